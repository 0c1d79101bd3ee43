// tools/driver/output_path.h - where a result goes, as users write it.
#pragma once

#include <filesystem>

namespace mlc {

// "m.mlpackage/", as shells complete the name of a folder, is m.mlpackage.
inline std::filesystem::path WithoutSlash(const std::filesystem::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

}  // namespace mlc
