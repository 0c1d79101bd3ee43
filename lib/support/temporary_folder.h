// lib/support/temporary_folder.h - a folder that goes with the object that made it, or with the process when a signal
// ends it (interrupt.h).
#pragma once

#include <filesystem>

namespace mlc {

struct TemporaryFolder {
  std::filesystem::path path;
  // Error "file-io" where none can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace mlc
