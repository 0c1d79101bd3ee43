// tools/driver/pipeline.h - running passes, and what is left behind where one breaks a promise.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/passes/pass.h"

namespace mlc {

// What a user asks of the passes. `print` and `timed` show it: the driver prints nothing.
struct PassOptions : PipelineOptions {
  bool time_passes = false;
  std::function<void(const std::vector<PassRun>&)> timed;  // called for time_passes
};

// "fp16", "fp32", "mixed".
std::string_view Name(PassContext::Precision precision);
std::optional<PassContext::Precision> ParsePrecision(std::string_view name);

// Runs the passes on `program`. Where one breaks a promise of ours, `again` makes the program anew
// and the passes before the broken one run; the InternalError says in which file the program before
// it is (MIL text in the folder for temporary files) and how to rerun.
std::vector<PassRun> RunPipeline(Program& program, const std::function<Program()>& again,
                                 const std::vector<const PassDef*>& passes, PassContext& context,
                                 const PassOptions& options);

struct OptimizeOptions {
  std::optional<std::vector<const PassDef*>> passes;                 // absent: the default pipeline
  PassContext::Precision precision = PassContext::Precision::kFp32;  // what that aims at
  PassOptions pipeline;
  bool inline_constants = false;  // in text, small constants where they are used
  std::filesystem::path output;   // .mlpackage or .mil; empty: only `text`
  bool force = false;             // replace what is there
};
struct OptimizeResult {
  std::vector<PassRun> passes;
  bool changed = false;
  std::string text;  // where nothing was written
};
// Passes alone: a model of any format in, a package or MIL text out. Error "usage" for another
// output.
OptimizeResult Optimize(const std::filesystem::path& model, const OptimizeOptions& options,
                        Diagnostics& diagnostics);

}  // namespace mlc
