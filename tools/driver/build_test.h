// tools/driver/build_test.h - tests the outputs of a variant, which another machine may have built.
#pragma once

#include "tools/driver/build_actions.h"

namespace mlc::driver {

// Runs what the recipe requires of the package, parity bundle and latency on these units (absent:
// DefaultUnits()), and changes nothing in the folder. The package must be that of its manifest, and
// made from the source of the recipe, which need not be there. Failures are in the record.
BuildRecord TestVariant(const VariantBuild& build, const std::filesystem::path& out,
                        std::optional<runtime::Units> units);

}  // namespace mlc::driver
