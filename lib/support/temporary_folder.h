// lib/support/temporary_folder.h - a temporary folder that is removed with its object, or when a
// signal ends the process (interrupt.h).
#pragma once

#include <filesystem>

namespace mlc {

// The folder for temporary files: that of the WorkScope, or else of the environment.
std::filesystem::path TemporaryRoot();

struct TemporaryFolder {
  std::filesystem::path path;
  // Error "file-io" if it cannot be created.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace mlc
