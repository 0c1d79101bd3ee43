// tools/driver/measured.h - what runs on devices measured of a package, in its manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

struct MergedResults {
  std::filesystem::path manifest;
  int64_t added = 0, replaced = 0, skipped = 0;  // skipped: of other packages
};

// Puts what histories (`mlc run --history`, one or more lines each) measured into the manifest beside a package, as its
// field `measured`: one entry for each machine, function and units, the newest. Where the same machine measured the CPU
// alone, entries say how much faster they are. Error "check-failed" when the manifest is of another package, or no
// result is of this one; "file-io" where there is no manifest; "bad-file" for what is no history.
MergedResults MergeResults(const std::filesystem::path& package,
                           const std::vector<std::filesystem::path>& histories);

}  // namespace mlc
