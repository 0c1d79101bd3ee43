// lib/support/temporary_folder.h - a folder that goes with the object that made it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "lib/support/error.h"

namespace mlc {

// Error "file-io" where none can be made.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string text = (std::filesystem::temp_directory_path() / "mlc-XXXXXX").string();
    if (!mkdtemp(text.data()))
      throw Error("file-io",
                  fmt::format("cannot make a folder \"{}\": {}", text, std::strerror(errno)));
    path = text;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace mlc
