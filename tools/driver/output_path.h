// tools/driver/output_path.h - normalises paths given by users.
#pragma once

#include <filesystem>

#include "lib/support/error.h"

namespace mlc::driver {

// Removes a trailing slash, which shells append when they complete a folder: "m.mlpackage/".
inline std::filesystem::path WithoutSlash(const std::filesystem::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

// The output path that -o stands for: "DIR/" is the file of this name in DIR, which is created;
// "m.mlpackage/" is the package. Error "usage" for "-", since packages are folders; "file-io".
inline std::filesystem::path OutputPath(const std::filesystem::path& given,
                                        const std::filesystem::path& default_name) {
  if (given == "-")
    throw Error("usage", "-o: this output cannot be written to standard output")
        .Help("a file named \"-\" is ./-");
  const std::filesystem::path path = WithoutSlash(given), ending = path.extension();
  if (path == given || ending == ".mlpackage" || ending == ".mlmodelc") return path;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw Error("file-io", "cannot create folder \"{}\": {}", path.string(), error.message());
  return path / default_name.filename();
}

}  // namespace mlc::driver
