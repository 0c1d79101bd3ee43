// tools/driver/run_passes.h - runs passes, and saves a reproducer when one fails.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/compress/compression.h"
#include "lib/media/picture.h"
#include "lib/passes/pass.h"

namespace mlc::driver {

// Pass options of the tools. Output goes to the callbacks `print` and `timed`; the driver does not
// print.
struct PassOptions : passes::PipelineOptions {
  bool time_passes = false;
  std::function<void(const std::vector<passes::PassRun>&)> timed;  // called if time_passes is set
};

// "fp16", "fp32", "mixed".
std::string_view Name(passes::PassContext::Precision precision);
std::optional<passes::PassContext::Precision> ParsePrecision(std::string_view name);

// Runs the passes on `program`. If one throws an InternalError, the program is created again with
// `again` and the passes before the failed one are rerun. The error then names a file with the
// program before the failed pass (MIL text in the temporary folder) and the command that reproduces
// the failure.
std::vector<passes::PassRun> RunPipeline(Program& program, const std::function<Program()>& again,
                                         const std::vector<const passes::PassDef*>& passes,
                                         passes::PassContext& context, const PassOptions& options);

// Writes a program as it is: as MIL text if the path ends in .mil, otherwise as a package for the
// lowest target that supports it.
void WriteProgram(Program& program, const std::filesystem::path& output, bool force,
                  Diagnostics& diagnostics);

struct OptimizeOptions {
  std::optional<std::vector<const passes::PassDef*>> passes;  // absent: the default pipeline
  // Precision of the default pipeline.
  passes::PassContext::Precision precision = passes::PassContext::Precision::kFp32;
  std::optional<analysis::Unit> optimize_for;  // the compute unit whose forms are preferred
  PassOptions pipeline;
  // Rules of compression (lib/compress/rules.h); or all encoded constants become plain. Then the
  // default passes are those that compression needs.
  std::string compress;
  bool decompress = false;
  std::string calibrate;               // inputs to compress for (calibration.h); empty: none
  media::Fit fit = media::Fit::kNone;  // of pictures and sounds among them
  std::filesystem::path report;        // of compression (compression_page.h); empty: none
  std::filesystem::path resume;   // folder of compressed weights (stored_results.h); empty: none
  bool train = true;              // compressed weights, on the inputs of `calibrate`
  bool inline_constants = false;  // print small constants at their uses in MIL text
  std::filesystem::path output;   // .mlpackage or .mil; empty: only `text`
  bool force = false;             // replace existing outputs
  Progress progress = {};         // of compressing and of writing weights
};
struct OptimizeResult {
  std::vector<passes::PassRun> passes;
  bool changed = false;
  std::optional<compress::Compression> compression;  // absent: not requested
  std::string text;                                  // MIL text, if no output was written
};
// Runs passes on a program, which is meant to be written as a package. Options of output have no
// effect, and the result has no text.
OptimizeResult OptimizeProgram(Program& program, const OptimizeOptions& options,
                               Diagnostics& diagnostics);
// Runs passes on a model of any format and returns MIL text or writes a package. Error "usage" for
// other outputs.
OptimizeResult Optimize(const std::filesystem::path& model, const OptimizeOptions& options,
                        Diagnostics& diagnostics);

}  // namespace mlc::driver
