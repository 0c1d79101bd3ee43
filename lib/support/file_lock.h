// lib/support/file_lock.h - locks between processes, by flock(2): the kernel ends them with the process that has them,
// however it ends.
#pragma once

#include <filesystem>
#include <optional>

namespace mlc {

// Move-only. Two of one process keep each other out as those of two processes do.
class FileLock {
 public:
  enum Kind { kShared, kExclusive };
  // Makes the file where it is absent, and waits. Error "file-io".
  static FileLock Wait(const std::filesystem::path& path, Kind kind);
  // Nothing where somebody else has it.
  static std::optional<FileLock> Try(const std::filesystem::path& path, Kind kind);
  // Of a folder that is there; nothing, too, where it is not or cannot be locked.
  static std::optional<FileLock> TryFolder(const std::filesystem::path& path);
  // Waits; nothing where the folder is gone. On a file system without locks it is one of nothing. Error "file-io".
  static std::optional<FileLock> WaitFolder(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // From exclusive to shared. False where somebody was quicker; then there is no lock any more.
  bool Share();
  // Removes the file; the lock must be exclusive. Who waits for it makes another.
  void RemoveFile();

 private:
  FileLock(int file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}
  static std::optional<FileLock> Take(const std::filesystem::path& path, int flags, int operation);
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace mlc
