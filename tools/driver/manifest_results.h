// tools/driver/manifest_results.h - merges results measured on devices into a package's manifest.
#pragma once

#include <filesystem>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

struct MergedResults {
  std::filesystem::path manifest;
  int64_t added = 0, replaced = 0;
  // skipped: older than the manifest's entry for the same machine, function and units
  int64_t older = 0;
  int64_t skipped = 0;  // results of other packages and of source models
  int64_t failed =
      0;  // runs without a valid measurement: nothing ran, or a prediction failed or fell back
};

// Merges the measurements in histories (`mlc run --history`, one or more lines each) into the
// manifest beside a package, as its field `measured`: the newest entry for each machine, function,
// units and kind of prediction. Entries include the speedup over the CPU if the same machine has
// measured that, too. Several processes may merge at once. A truncated last line is a warning.
// Error "check-failed" if the manifest belongs to another package, or no result is a measurement of
// this one; "file-io" if there is no manifest; "bad-file" for an invalid manifest or history.
MergedResults MergeResults(const std::filesystem::path& package,
                           const std::vector<std::filesystem::path>& histories,
                           Diagnostics& diagnostics);

}  // namespace mlc::driver
