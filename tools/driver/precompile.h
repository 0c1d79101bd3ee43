// tools/driver/precompile.h - writes the compiled bundle of a package, which Core ML's compiler
// writes on a Mac.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lib/support/error.h"
#include "lib/support/progress.h"

namespace mlc::driver {

inline constexpr std::string_view kExperimental =
    "experimental: made without Core ML's own compiler";

// Versions that a bundle or its MIL text states. Empty: the newest known.
struct BundleVersions {
  std::string compiler, mil;
  friend bool operator==(const BundleVersions&, const BundleVersions&) = default;
};

struct PrecompileOptions {
  BundleVersions versions;
  bool force = false;           // replace existing output
  std::filesystem::path cache;  // folder of a FolderCache; empty: none
  Progress progress = {};
};

// Writes the bundle of a .mlpackage or .mlmodel, or copies it from the cache; returns whether it
// was cached. Error "usage" for other formats, and for an output whose extension is not .mlmodelc.
bool Precompile(const std::filesystem::path& package, const std::filesystem::path& output,
                const PrecompileOptions& options, Diagnostics& diagnostics);
// Like Precompile, without its checks and the cache. The stem of `name` is the model's name
// in the bundle. `take_weights`: weight files may be moved out of the package instead of copied.
void MakeBundle(const std::filesystem::path& package, const std::filesystem::path& output,
                const std::filesystem::path& name, bool take_weights,
                const PrecompileOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
