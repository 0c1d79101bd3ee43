// lib/cache/work_folder.h - a private folder for files under construction, on the same file system
// as their destination.
#pragma once

#include <filesystem>
#include <optional>

#include "lib/support/file_lock.h"

namespace mlc::cache {

// PARENT/PID-N, which is locked and removed with this object. If the process is killed, it stays
// until RemoveStale.
class WorkFolder {
 public:
  // Error "file-io".
  explicit WorkFolder(const std::filesystem::path& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Removes the folders of processes that have ended.
  static void RemoveStale(const std::filesystem::path& parent);

 private:
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

}  // namespace mlc::cache
