// tools/driver/runtimes.h - which runtime computes: the one place where tools ask for one.
#pragma once

#include <memory>

#include "tools/driver/reference_runtime.h"

namespace mlc {

// Makes Core ML's runtime; null where there is none. Apple's systems have one; a test's main() may set a stand-in,
// before anything else.
extern std::unique_ptr<Runtime> (*make_core_ml)();

// What computes where nobody says: all of Core ML's units where that is, mlc's engine elsewhere.
Units DefaultUnits();

// Mlc's engine for kReference, Core ML for all others. Error "no-coreml" where there is none. `diagnostics` outlives it.
std::unique_ptr<Runtime> MakeRuntime(Units units, const ReferenceOptions& options,
                                     Diagnostics& diagnostics);

}  // namespace mlc
