// lib/verify/measure.h - what fp16 does to a program, found out by running it, and which operations
// stay fp32 for it.
//
// A candidate is the program after fp16-precision and the passes behind it, run in faithful
// arithmetic beside the source in fp32 on the same inputs. It fits when no number leaves fp16 (none
// is infinite or NaN that is not in fp32) and every output is within the budget of fp16, floor
// included (lib/verify/floor.h). Wanted is less, as other inputs make other errors: the greatest of
// a figure stays 3/4 as far below its budget as it is above the usual one (half as far of many
// samples), or it is within 1.25 floors; of what computes much, it is 15 % below its budget. What
// was chosen is then run on the inputs that confirm; those that disprove it are taken in, and it is
// chosen anew. Then it is run with sums in other orders (other_sums.h), of which others' kernels
// have one: a gate can make a last digit great, and what fits in one order alone fits by chance.
// Where that disproves it, candidates are run in several orders from then on. Runs use reproducible
// kernels alone: what is chosen depends on no thread count, library or processor.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/passes/pass.h"
#include "lib/verify/functions.h"

namespace mlc {

// What a program is run on.
struct MeasureInputs {
  std::map<std::string, std::vector<StepInputs>> steps;  // by function
  // Likewise: more than are affordable in each run. None for functions with states.
  std::map<std::string, std::vector<StepInputs>> confirm;
  bool made_up = false;
  // Why outputs are not compared, for a sentence; then steps are run in fp32 alone, for the range
  // of their numbers, if there are any.
  std::string too_large;
};
// Made-up ones. Outputs are compared where each run takes at most `most_work` multiply-adds and the
// constants at most `most_weights` bytes, ranges are looked at up to ten times the work and 1.25
// times the weights, both of at most 10,000 operations and 1.25e8 elements, each of an input
// counting as four. As many samples as `verify` has where they are cheap, more where they compute
// little: a few numbers say little of others; the others of `verify` confirm. Of the program as it
// was imported: rewritten, it would ask for others.
MeasureInputs MakeUpMeasureInputs(const Program& program, double most_work = 1e9,
                                  uint64_t most_weights = 100'000'000);

struct MeasureOptions {
  std::vector<const PassDef*> passes;  // that make a candidate: from fp16-precision on
  MeasureInputs inputs;
  std::function<Program()> source = {};  // as imported, anew; empty: `program` is the reference
  bool floor = true;                     // what of the source allows more than the budgets
  Budgets budgets = ParseBudgets("fp16");
  // Find the smallest set of operations that must stay fp32, and what others would do, instead of
  // one that is found with few runs.
  bool least = false;
  int most_runs = 12;  // of candidates, for a choice; but for `least`
  EngineOptions::Kernels kernels = EngineOptions::Kernels::kReproducible;  // kEval chooses the same
};

struct Measurement {
  std::string not_measured;  // why outputs were not compared; empty: they were
  bool ranges = false;       // whether numbers beyond fp16 were looked for, by running it
  bool made_up = false;      // on inputs that nobody gave
  int runs = 0;              // of candidates
  // Of the worst output, the figure that is worst for what is allowed of it.
  struct Figure {
    enum class Kind {
      kError,
      kRmse,
      kUnequal,  // of integers: their share
      kBeyond    // likewise, of those that are judged one by one
    } kind = Kind::kError;
    std::string output;
    double value = 0, allowed = 0;
    bool fits = true;
    double Part() const;  // of what is allowed
  };
  Figure plain, chosen;  // before anything was kept in fp32 by measuring, and in the end
  // In the end, an output that is NaN or infinite where the source's is a number; empty: none is.
  std::string broken;
  struct Point {
    double fp16_share = 0;  // of the work
    Figure worst;
  };
  std::vector<Point> curve;  // of `least`: the trade-off between the two, by share
};

std::string_view Name(Measurement::Figure::Kind kind);  // "an RMSE", for a sentence
std::string_view Word(Measurement::Figure::Kind kind);  // "RMSE", for a column

// Fills in context.measured: operations of `program` by name, with the evidence. `context` is as
// fp16-precision has it; what the user wants in fp16 is none of them, and no reason for others.
// Where fp16 selects other boxes, or its constants alone change how many, all
// that makes what they are selected by stays fp32; --precision mixed keeps it wherever something
// does not fit. Warns ("check-failed") where no choice fits. What a run on made-up inputs throws
// makes the program one that is not measured.
Measurement MeasureFp16(const Program& program, PassContext& context,
                        const MeasureOptions& options);

}  // namespace mlc
