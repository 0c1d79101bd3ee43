// tools/driver/runtimes.h - creates the runtime for the requested units.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "tools/driver/reference_runtime.h"

namespace mlc::driver {

// Creates Core ML's runtime, null if unavailable. It is set on Apple's systems; the main() of a
// test may set a stand-in before anything else runs.
extern std::unique_ptr<runtime::Runtime> (*make_core_ml)();

// Returns the default units: all units of Core ML where it is available, otherwise the reference
// engine.
runtime::Units DefaultUnits();

// Creates the reference engine for kReference, Core ML for other units. Error "no-coreml" if
// unavailable.
std::unique_ptr<runtime::Runtime> MakeRuntime(runtime::Units units,
                                              const ReferenceOptions& options);

// The time limit of a load or a compilation, which may hang in Core ML. The reference engine has
// none, because it always terminates.
inline constexpr std::chrono::milliseconds kLoadLimit = std::chrono::minutes(10);
std::optional<std::chrono::milliseconds> LoadLimit(runtime::Units units,
                                                   std::optional<std::chrono::milliseconds> asked);

}  // namespace mlc::driver
