// tools/driver/sweep.h - the same run on all units that are there, to choose among them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/run.h"

namespace mlc {

struct SweepRow {
  Units units;
  std::optional<RunResult> result;
  std::optional<Error> error;  // why there is none
  std::string trouble;         // why it is not to be recommended; empty: nothing
};
struct SweepResult {
  std::vector<SweepRow> rows;
  std::optional<Units> recommended;  // nothing where nothing ran without failing
  std::string why;
};

// The median decides; of units within 5 % of the best, those that ask for the fewest devices. Core ML's units where it
// is, else mlc's engine alone. Outputs are written by none. Errors of a run are rows; those of the options are thrown.
SweepResult Sweep(const std::filesystem::path& model, const RunOptions& options,
                  Diagnostics& diagnostics);

}  // namespace mlc
