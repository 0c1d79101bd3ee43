// tools/driver/precompile.h - the compiled bundle of a package: what Core ML's own compiler makes on a Mac.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lib/support/error.h"

namespace mlc {

inline constexpr std::string_view kExperimental =
    "experimental: made without Core ML's own compiler";

// Versions that a bundle, or its text, names. Empty: the newest known.
struct BundleVersions {
  std::string compiler, mil;
  friend bool operator==(const BundleVersions&, const BundleVersions&) = default;
};

struct PrecompileOptions {
  BundleVersions versions;
  bool force = false;           // replace what is at the output
  std::filesystem::path cache;  // folder of a ModelCache; empty: none
};

// Writes the bundle of a .mlpackage or .mlmodel, or copies it from the cache; true: it was there.
// Error "usage" for other formats, and for an output that does not end in .mlmodelc.
bool Precompile(const std::filesystem::path& package, const std::filesystem::path& output,
                const PrecompileOptions& options, Diagnostics& diagnostics);
// The same unchecked; `name` is what its stem says of the model. `take_weights`: the package may
// lose its weight files.
void MakeBundle(const std::filesystem::path& package, const std::filesystem::path& output,
                const std::filesystem::path& name, bool take_weights,
                const PrecompileOptions& options, Diagnostics& diagnostics);

}  // namespace mlc
