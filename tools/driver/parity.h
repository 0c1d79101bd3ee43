// tools/driver/parity.h - parity bundles (lib/verify/parity.h): running one, and looking at what a run of it says.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "lib/runtime/circuit_breaker.h"
#include "lib/runtime/runtime.h"
#include "lib/support/error.h"
#include "lib/verify/parity.h"

namespace mlc {

struct ParityOptions {
  std::optional<Units> units;  // absent: DefaultUnits()
  // Of one step; of a load or compilation of Core ML's (absent: as Run has it).
  std::optional<std::chrono::milliseconds> timeout, load_timeout;
  BreakerOptions::Override breaker = BreakerOptions::Override::kAuto;
  bool bundles_only = false;  // error "usage" where the package is no .mlmodelc
};
// Runs the package of a bundle on the bundle's inputs and writes the result to `written`. Error
// "check-failed" when the package is another than the bundle was made of.
ParityResult RunParity(const std::filesystem::path& folder, const std::filesystem::path& written,
                       const ParityOptions& options, Diagnostics& diagnostics);
// The result in `file` of the bundle in its folder, or in `bundle`. Error "check-failed" when it is
// of another package than `package`, if one is named.
ParityResult CheckResult(const std::filesystem::path& file, const std::filesystem::path& bundle,
                         const std::filesystem::path& package);

}  // namespace mlc
