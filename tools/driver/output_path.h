// tools/driver/output_path.h - normalises output paths given by users.
#pragma once

#include <filesystem>

namespace mlc::driver {

// Removes a trailing slash, which shells append when they complete a folder: "m.mlpackage/".
inline std::filesystem::path WithoutSlash(const std::filesystem::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

}  // namespace mlc::driver
