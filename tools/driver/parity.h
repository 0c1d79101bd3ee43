// tools/driver/parity.h - runs parity bundles (lib/verify/parity_bundle.h) and checks their
// results.
#pragma once

#include <filesystem>

#include "lib/runtime/circuit_breaker.h"
#include "lib/verify/parity_bundle.h"
#include "tools/driver/model.h"

namespace mlc::driver {

// Runs the package of a bundle on the bundle's inputs and writes the result to `written`. `options`
// apply to each function. Error "check-failed" if the package differs from the one that the bundle
// was made from; the errors of Model.
verify::ParityResult RunParity(const std::filesystem::path& folder,
                               const std::filesystem::path& written, const ModelOptions& options,
                               runtime::BreakerOptions::Override breaker, Diagnostics& diagnostics);
// Checks the result in `file` against the bundle in its folder, or in `bundle` if not empty. Error
// "check-failed" if the result belongs to another package than `package` (empty: any).
verify::ParityResult CheckResult(const std::filesystem::path& file,
                                 const std::filesystem::path& bundle,
                                 const std::filesystem::path& package);

}  // namespace mlc::driver
