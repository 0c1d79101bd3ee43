// lib/precision/measure.h - measures the effect of fp16 on a program by running it, and selects the
// operations that stay in fp32.
//
// A candidate is the program after fp16-precision and the passes that follow it. It runs in
// faithful arithmetic and is compared with the fp32 program on the same inputs. It fits if no value
// leaves the range of fp16 (is infinite or NaN only there) and every output is within its budget,
// including the floor (lib/verify/fp16_floor.h). The default search (rounding.h) repairs
// overflow and keeps little else in fp32; --precision mixed (minimal_fp32_search.h) looks for a
// minimal set that fits. All runs use reproducible kernels, so the choice does not depend on the
// number of threads, the libraries or the processor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/passes/pass.h"
#include "lib/support/progress.h"
#include "lib/verify/compare_functions.h"

namespace mlc::precision {

// The inputs for measuring.
struct MeasureInputs {
  std::map<std::string, std::vector<verify::StepInputs>> steps;  // by function
  // Further inputs, for confirming a choice: those of `mlc verify`, as far as they are affordable.
  // For --precision mixed, none for functions with states.
  std::map<std::string, std::vector<verify::StepInputs>> more;
  // For inputs that look like images: one sample in the widest common range, unless `steps` already
  // use that range, and the name of the range. It is run only in fp32.
  std::map<std::string, std::vector<verify::StepInputs>> other_range;
  std::string other_range_name;
  bool generated = false;
  std::string description;  // for generated inputs: "generated inputs: pictures in 0..1"
  // Why outputs are not compared, as part of a sentence. The steps, if any, are then only run in
  // fp32, to determine the range of values.
  std::string too_large;
  // The limit on the multiply-adds of all candidates. They are counted, not timed.
  double affordable = 0;
};
// Generates the inputs for the default precision: two small samples, and the samples of `mlc
// verify`. Outputs are compared if the runs take little time relative to the rest of compiling,
// which is estimated from the number of operations and the size of the weights. Otherwise one sample
// is run in fp32 to determine ranges, up to 1e10 multiply-adds.
// Programs with more than a gigabyte of constants are not run. `program` must be the imported
// program, because rewriting changes which inputs are generated.
MeasureInputs MakeUpMeasureInputs(const Program& program);
// Generates the inputs for --precision mixed: as many as for `mlc verify`, if a run takes at most
// `most_work` multiply-adds and the constants take at most `most_weights` bytes.
MeasureInputs MakeUpLeastInputs(const Program& program, double most_work, uint64_t most_weights);

struct MeasureOptions {
  std::vector<const passes::PassDef*> passes;  // passes from fp16-precision on
  MeasureInputs inputs;
  std::function<Program()> source =
      {};             // imports the program again; if empty, `program` is the reference
  bool floor = true;  // let floors raise the budgets
  verify::Budgets budgets = verify::ParseBudgets("fp16");
  bool least = false;      // --precision mixed
  Progress progress = {};  // of the runs, whose number is unknown before
  engine::EngineOptions::Kernels kernels =
      engine::EngineOptions::Kernels::kReproducible;  // kEval gives the same choice
};

struct Measurement {
  std::string not_measured;  // why outputs were not compared; empty if they were
  bool ranges = false;       // whether a run checked for values outside the range of fp16
  bool generated = false;    // the inputs were generated
  std::string inputs;        // description of the generated inputs
  int runs = 0;              // number of candidate runs
  // The figure of the worst output that uses the largest part of its limit.
  struct Figure {
    enum class Kind {
      kError,
      kRmse,
      kUnequal,  // share of unequal integers
      kBeyond    // share of elements outside atol and rtol
    } kind = Kind::kError;
    std::string output;
    double value = 0, allowed = 0;
    bool fits = true;
    double Part() const;  // value / limit
  };
  Figure plain, chosen;  // before keeping anything in fp32 for rounding; the final choice
  // An output of the final choice that is NaN or infinite where the source is finite; empty if
  // none.
  std::string broken;
  // The outputs of the final choice that exceed their budgets.
  std::vector<Figure> beyond;
  // A share of the work in fp32 that brings all outputs within their budgets; not necessarily the
  // smallest.
  std::optional<double> mixed_share;
  // A sentence about overflow for images in another common range, if it was not repaired.
  std::string other_range;
  struct Point {
    double fp16_share = 0;  // share of the work in fp16
    Figure worst;
  };
  std::vector<Point> curve;  // --precision mixed: the trade-off between error and share, by share
};

std::string_view Name(Measurement::Figure::Kind kind);  // for a sentence: "an RMSE"
std::string_view Word(Measurement::Figure::Kind kind);  // for a column: "RMSE"

// Fills in context.measured with operations of `program` by name, and the evidence. `context` is
// the one given to fp16-precision; operations that the user wants in fp16 are never added and cause
// no others to be added. Warns ("check-failed") if no choice of --precision mixed fits. If a run on
// generated inputs throws, the program is reported as not measured.
Measurement MeasureFp16(const Program& program, passes::PassContext& context,
                        const MeasureOptions& options);

}  // namespace mlc::precision
