// lib/support/file_lock.h - locks between processes, based on flock(2): the kernel releases a lock
// when its process ends, even by a crash.
#pragma once

#include <filesystem>
#include <optional>

namespace mlc {

// Move-only. Two locks of the same process exclude each other like those of two processes.
class FileLock {
 public:
  enum Kind { kShared, kExclusive };
  // Creates the file if necessary and blocks until it is locked. Error "file-io".
  static FileLock Wait(const std::filesystem::path& path, Kind kind);
  // Returns nothing if the lock is held elsewhere.
  static std::optional<FileLock> Try(const std::filesystem::path& path, Kind kind);
  // Locks a folder. Returns nothing if the lock is held elsewhere, or if the folder does not exist
  // or cannot be locked.
  static std::optional<FileLock> TryFolder(const std::filesystem::path& path);
  // Locks a folder and waits for the lock. Returns nothing if the folder does not exist. On a file
  // system without locks, the result locks nothing. Error "file-io".
  static std::optional<FileLock> WaitFolder(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Downgrades from exclusive to shared. Returns false, without any lock, if another process got
  // the lock in between.
  bool Share();
  // Removes the file; the lock must be exclusive. Processes waiting for the lock create a new file.
  void RemoveFile();

 private:
  FileLock(int file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}
  static std::optional<FileLock> Take(const std::filesystem::path& path, int flags, int operation);
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace mlc
