// tools/driver/runtimes.h - which runtime computes: the one place where tools ask for one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "tools/driver/reference_runtime.h"

namespace mlc {

// Makes Core ML's runtime; null where there is none. Apple's systems have one; a test's main() may set a stand-in,
// before anything else.
extern std::unique_ptr<Runtime> (*make_core_ml)();

// What computes where nobody says: all of Core ML's units where that is, mlc's engine elsewhere.
Units DefaultUnits();

// Mlc's engine for kReference, Core ML for all others. Error "no-coreml" where there is none.
std::unique_ptr<Runtime> MakeRuntime(Units units, const ReferenceOptions& options);

// How long a load or a compilation may take: what Core ML does may hang as a prediction may. mlc's engine ends by
// itself, and has no limit.
inline constexpr std::chrono::milliseconds kLoadLimit = std::chrono::minutes(10);
std::optional<std::chrono::milliseconds> LoadLimit(Units units,
                                                   std::optional<std::chrono::milliseconds> asked);

}  // namespace mlc
