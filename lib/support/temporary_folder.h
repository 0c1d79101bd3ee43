// lib/support/temporary_folder.h - a temporary folder that is removed with its object, or when a
// signal ends the process (interrupt.h).
#pragma once

#include <filesystem>

namespace mlc {

struct TemporaryFolder {
  std::filesystem::path path;
  // Error "file-io" if it cannot be created.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace mlc
