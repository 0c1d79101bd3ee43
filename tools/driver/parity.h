// tools/driver/parity.h - parity bundles (lib/verify/parity.h): running one, and looking at what a run of it says.
#pragma once

#include <filesystem>

#include "lib/support/error.h"
#include "lib/verify/parity.h"

namespace mlc {

// Runs the package of a bundle on the bundle's inputs and writes the result to `written`. Error
// "check-failed" when the package is another than the bundle was made of. `bundles_only`: error
// "usage" where it is no .mlmodelc.
ParityResult RunParity(const std::filesystem::path& folder, const std::filesystem::path& written,
                       bool bundles_only, Diagnostics& diagnostics);
// The result in `file` of the bundle in its folder, or in `bundle`. Error "check-failed" when it is
// of another package than `package`, if one is named.
ParityResult CheckResult(const std::filesystem::path& file, const std::filesystem::path& bundle,
                         const std::filesystem::path& package);

}  // namespace mlc
