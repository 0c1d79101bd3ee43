// tools/driver/build_variant.h - builds one variant of a recipe, as far as it is not up to date.
#pragma once

#include <optional>

#include "tools/driver/build_actions.h"
#include "tools/driver/build_cache.h"

namespace mlc::driver {

enum class BuildMode {
  kLook,   // find out what is up to date; changes nothing
  kFetch,  // use the results of earlier builds and of the cache only
  kMake,
};

// Runs the actions that are not up to date, and installs the results if all checks passed.
// Otherwise the output folder keeps what it had. Waits while another process builds the same
// variant there. Failures are in the record. With kFetch, returns nothing if an action would have
// to run. With kLook, the status is kUpToDate, or kNotBuilt with the reasons.
std::optional<BuildRecord> BuildVariant(const VariantBuild& build, BuildMode mode,
                                        BuildFolder& folder, BuildCache* cache, bool force);

}  // namespace mlc::driver
