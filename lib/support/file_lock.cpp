#include "lib/support/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/support/error.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

// Returns whether `path` is still the locked file; it may have been removed before it was locked.
bool IsSame(int file, const fs::path& path) {
  struct stat held, named;
  return fstat(file, &held) == 0 && lstat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

Error IoError(const fs::path& path) {
  return Error("file-io", "cannot lock \"{}\": {}", path.string(), strerror(errno));
}

int Operation(FileLock::Kind kind) { return kind == FileLock::kShared ? LOCK_SH : LOCK_EX; }

constexpr int kFile = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
              kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

std::optional<FileLock> FileLock::Take(const fs::path& path, int flags, int operation) {
  const bool folder = flags == kFolder, waits = !(operation & LOCK_NB);
  while (true) {
    int file = open(path.c_str(), flags, 0666);
    // A file of another user that is only readable can still be locked.
    if (file < 0 && !folder && (errno == EACCES || errno == EROFS))
      file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
      if (folder && (!waits || errno == ENOENT)) return std::nullopt;
      throw IoError(path);
    }
    FileLock lock(file, path);
    int failed;
    while ((failed = flock(file, operation)) != 0 && errno == EINTR) {
    }
    if (failed != 0 && (errno == EWOULDBLOCK || (folder && !waits))) return std::nullopt;
    if (failed != 0 && !folder) throw IoError(path);
    if (IsSame(file, path)) return lock;
    if (folder) return std::nullopt;
  }
}

FileLock FileLock::Wait(const fs::path& path, Kind kind) {
  return *Take(path, kFile, Operation(kind));
}

std::optional<FileLock> FileLock::Try(const fs::path& path, Kind kind) {
  return Take(path, kFile, Operation(kind) | LOCK_NB);
}

std::optional<FileLock> FileLock::TryFolder(const fs::path& path) {
  return Take(path, kFolder, LOCK_EX | LOCK_NB);
}

std::optional<FileLock> FileLock::WaitFolder(const fs::path& path) {
  return Take(path, kFolder, LOCK_EX);
}

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

bool FileLock::Share() { return flock(file_, LOCK_SH | LOCK_NB) == 0; }

void FileLock::RemoveFile() { unlink(path_.c_str()); }

}  // namespace mlc
