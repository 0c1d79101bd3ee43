// lib/support/scratch_folders.h - the folders that a process removes when a signal ends it: those of every Staging and
// TemporaryFolder.
#pragma once

#include <filesystem>
#include <mutex>

namespace mlc {

class ScratchFolders {
 public:
  // To hold while one is made, removed or installed.
  ScratchFolders();
  void Add(const std::filesystem::path& folder);
  // From the disk, too.
  void Remove(const std::filesystem::path& folder);

  // For a process that is about to end: removes all. From then on the constructor waits forever.
  static void RemoveAll();

 private:
  std::lock_guard<std::mutex> lock_;
};

}  // namespace mlc
