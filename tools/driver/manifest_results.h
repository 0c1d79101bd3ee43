// tools/driver/manifest_results.h - what runs on devices measured of a package, in its manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

struct MergedResults {
  std::filesystem::path manifest;
  int64_t added = 0, replaced = 0;
  int64_t older = 0;    // than what the manifest has of the same machine, function and units
  int64_t skipped = 0;  // of other packages, and of source models
  int64_t failed =
      0;  // of runs that are no measurement: nothing ran, or something failed or fell back
};

// Puts what histories (`mlc run --history`, one or more lines each) measured into the manifest beside a package, as its
// field `measured`: one entry for each machine, function, units and kind of prediction, the newest. Where the same machine measured the CPU
// alone, entries say how much faster they are. Several may merge at once. A last line that was cut off is a warning.
// Error "check-failed" when the manifest is of another package, or no result is a measurement of this one; "file-io"
// where there is no manifest; "bad-file" for what is no manifest or no history.
MergedResults MergeResults(const std::filesystem::path& package,
                           const std::vector<std::filesystem::path>& histories,
                           Diagnostics& diagnostics);

}  // namespace mlc
