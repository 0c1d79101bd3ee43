// lib/support/scratch_folders.h - the registry of folders that a signal handler removes: those of
// every Staging and TemporaryFolder.
#pragma once

#include <filesystem>
#include <mutex>

namespace mlc {

class ScratchFolders {
 public:
  // Locks the registry. Hold it while a folder is created, removed or installed.
  ScratchFolders();
  void Add(const std::filesystem::path& folder);
  // Removes the folder from the registry and from the disk.
  void Remove(const std::filesystem::path& folder);

  // Removes all folders, for a process that is about to exit. Afterwards, the constructor blocks
  // forever.
  static void RemoveAll();

 private:
  std::lock_guard<std::mutex> lock_;
};

}  // namespace mlc
