// tools/driver/parity.h - runs parity bundles (lib/verify/parity_bundle.h) and checks their
// results.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "lib/runtime/circuit_breaker.h"
#include "lib/runtime/runtime.h"
#include "lib/support/error.h"
#include "lib/verify/parity_bundle.h"

namespace mlc::driver {

struct ParityOptions {
  std::optional<runtime::Units> units;  // absent: DefaultUnits()
  // Limits for one step, and for a load or compilation by Core ML (absent: the default of Run).
  std::optional<std::chrono::milliseconds> timeout, load_timeout;
  runtime::BreakerOptions::Override breaker = runtime::BreakerOptions::Override::kAuto;
  bool bundles_only = false;  // error "usage" unless the package is a .mlmodelc
};
// Runs the package of a bundle on the bundle's inputs and writes the result to `written`. Error
// "check-failed" if the package differs from the one that the bundle was made from.
verify::ParityResult RunParity(const std::filesystem::path& folder,
                               const std::filesystem::path& written, const ParityOptions& options,
                               Diagnostics& diagnostics);
// Checks the result in `file` against the bundle in its folder, or in `bundle` if not empty. Error
// "check-failed" if the result belongs to another package than `package` (empty: any).
verify::ParityResult CheckResult(const std::filesystem::path& file,
                                 const std::filesystem::path& bundle,
                                 const std::filesystem::path& package);

}  // namespace mlc::driver
