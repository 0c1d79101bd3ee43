// lib/precision/measure.h - what fp16 does to a program, found out by running it, and which operations
// stay fp32 for it.
//
// A candidate is the program after fp16-precision and the passes behind it, run in faithful
// arithmetic beside the program in fp32 on the same inputs. It fits when no number leaves fp16 (none
// is infinite or NaN that is not in fp32) and every output is within its budget, floor included
// (lib/verify/floor.h). The default (rounding.h) mends what leaves fp16 and keeps little else in
// fp32; --precision mixed (least.h) looks for the least that fits. Runs use reproducible kernels
// alone: what is chosen depends on no thread count, library or processor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/passes/pass.h"
#include "lib/verify/functions.h"

namespace mlc {

// What a program is run on.
struct MeasureInputs {
  std::map<std::string, std::vector<StepInputs>> steps;  // by function
  // Likewise, for where the first leave it open (the default) or to confirm a choice (--precision
  // mixed). None for functions with states.
  std::map<std::string, std::vector<StepInputs>> more;
  // Likewise, where inputs look like pictures: one in the widest of the usual ranges, if that is not
  // the one of `steps`, and what the range is called. It is run in fp32 alone.
  std::map<std::string, std::vector<StepInputs>> other_range;
  std::string other_range_name;
  bool made_up = false;
  std::string description;  // what was made up: "made-up pictures in 0..1"
  // Why outputs are not compared, for a sentence; then steps are run in fp32 alone, for the range
  // of their numbers, if there are any.
  std::string too_large;
  // Multiply-adds that all candidates together may take; they are counted, never timed.
  double affordable = 0;
};
// Made-up ones for the default precision, of two samples. Outputs are compared where the runs take
// little beside what compiling takes anyway, which is estimated from the weights; else a run of one
// sample in fp32 is made, for ranges, of up to 1e10 multiply-adds. Nothing is run above a gigabyte of
// constants. The program is the one that was imported: a rewritten one would ask for other inputs.
MeasureInputs MakeUpMeasureInputs(const Program& program);
// Those of --precision mixed: as many as `mlc verify` has, where each run takes at most `most_work`
// multiply-adds and the constants at most `most_weights` bytes.
MeasureInputs MakeUpLeastInputs(const Program& program, double most_work, uint64_t most_weights);

struct MeasureOptions {
  std::vector<const PassDef*> passes;  // that make a candidate: from fp16-precision on
  MeasureInputs inputs;
  std::function<Program()> source = {};  // as imported, anew; empty: `program` is the reference
  bool floor = true;                     // what of the source allows more than the budgets
  Budgets budgets = ParseBudgets("fp16");
  bool least = false;                                                      // --precision mixed
  EngineOptions::Kernels kernels = EngineOptions::Kernels::kReproducible;  // kEval chooses the same
};

struct Measurement {
  std::string not_measured;  // why outputs were not compared; empty: they were
  bool ranges = false;       // whether numbers beyond fp16 were looked for, by running it
  bool made_up = false;      // on inputs that nobody gave
  std::string inputs;        // what those were
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
  Figure plain, chosen;  // before anything was kept in fp32 for rounding, and in the end
  // In the end, an output that is NaN or infinite where the source's is a number; empty: none is.
  std::string broken;
  // Outputs that are beyond their budgets in the end.
  std::vector<Figure> beyond;
  // A share of the work in fp32 with which all of them would be within; the least may be less.
  std::optional<double> mixed_share;
  // What would become infinite in another usual range of pictures, and is not mended; a sentence.
  std::string other_range;
  struct Point {
    double fp16_share = 0;  // of the work
    Figure worst;
  };
  std::vector<Point> curve;  // of --precision mixed: the trade-off between the two, by share
};

std::string_view Name(Measurement::Figure::Kind kind);  // "an RMSE", for a sentence
std::string_view Word(Measurement::Figure::Kind kind);  // "RMSE", for a column

// Fills in context.measured: operations of `program` by name, with the evidence. `context` is as
// fp16-precision has it; what the user wants in fp16 is none of them, and no reason for others.
// Warns ("check-failed") where no choice of --precision mixed fits. What a run on made-up inputs
// throws makes the program one that is not measured.
Measurement MeasureFp16(const Program& program, PassContext& context,
                        const MeasureOptions& options);

}  // namespace mlc
