// tools/driver/unit_sweep.h - repeats a run on all available units and recommends one of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/benchmark.h"

namespace mlc::driver {

struct SweepRow {
  runtime::Units units;
  std::optional<BenchmarkResult> result;
  std::optional<Error> error;  // why there is no result
  std::string trouble;         // why these units are not recommended; empty if they may be
};
struct SweepResult {
  std::vector<SweepRow> rows;
  std::optional<runtime::Units> recommended;  // absent: no units ran without failures
  std::string why;
};

// Recommends the units with the lowest median; of those within 5 % of the best, the ones that use
// the fewest devices. Covers Core ML's units if it is available, otherwise only the reference
// engine. No outputs are written. Errors of a run are stored in its row; errors in the options are
// thrown.
SweepResult Sweep(const std::filesystem::path& model, const BenchmarkOptions& options,
                  Diagnostics& diagnostics);

}  // namespace mlc::driver
