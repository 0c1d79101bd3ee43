// tools/driver/compression_sweep.h - compiles a model with several compression schemes, and measures the
// size, error and time of each package.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/report/document.h"
#include "tools/driver/compile.h"
#include "tools/driver/measure_perplexity.h"
#include "tools/driver/timing_statistics.h"
#include "tools/driver/verify.h"

namespace mlc::driver {

struct CompressionSweepOptions {
  std::vector<std::string> schemes;  // rules of --compress; each is for a package of its own
  CompileOptions compile;            // for all packages; import.compress is set
  VerifyOptions verify;              // inputs and budget; `import` is not used
  // A text for language models, which measures perplexity and divergence instead of errors of outputs.
  PerplexityOptions text;
  std::optional<runtime::Units> units;  // of the timed predictions; absent: the default
  int64_t iterations = 10, warmup = 2;
  std::filesystem::path
      folder;  // for the packages, MODEL-SCHEME.mlpackage; empty: they are removed
  // Called before each scheme and each of its steps: "int4: verifying".
  std::function<void(const std::string& scheme, const std::string& step)> step = {};
};

struct CompressionSweepRow {
  std::string scheme;
  std::filesystem::path package;  // empty: removed, or not written
  std::string target;
  uint64_t bytes = 0, weight_bytes = 0;  // of the files of the package; of its weights
  // The largest error of an output and of a state, as in Verify; or of `text`.
  std::optional<double> max_error, rmse;
  std::string worst;  // the output with that error
  std::optional<AgreementResult> text;
  bool within = true;               // the budget, if there is one
  std::optional<Statistics> times;  // of predictions, in ms
  std::string runtime;              // what was timed: "reference"
  std::vector<Error> errors;        // why something above is missing
};

struct CompressionSweepResult {
  std::vector<CompressionSweepRow> rows;  // in the order of the schemes
  int exit_code = 0;                      // the worst of all rows; 3 if a budget is exceeded
};

// Splits values of --compress into schemes: a comma separates schemes, unless a value has a semicolon
// or names a file and is one list of rules. Errors "usage": all values that are no rules, schemes that
// are given twice, none at all.
std::vector<std::string> SchemesOf(const std::vector<std::string>& values);

// Errors of single schemes are stored in their rows. Errors that concern all are thrown before
// anything is compiled: Errors "usage" for schemes that the target does not have, "file-io".
CompressionSweepResult SweepCompression(const std::filesystem::path& model,
                                        const CompressionSweepOptions& options,
                                        Diagnostics& diagnostics);

// A row for each scheme.
report::Table CompressionSweepTable(const CompressionSweepResult& result);
// One check for each scheme.
report::Document CompressionSweepReport(const std::filesystem::path& model,
                                        const CompressionSweepResult& result);

}  // namespace mlc::driver
