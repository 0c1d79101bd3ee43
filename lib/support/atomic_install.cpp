#include "lib/support/atomic_install.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/support/error.h"
#include "lib/support/input_registry.h"
#include "lib/support/regular_file.h"
#include "lib/support/scratch_folders.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

Error IoError(const char* what, const fs::path& path) {
  return Error("file-io", "cannot {} \"{}\": {}", what, path.string(), strerror(errno));
}

constexpr std::string_view kBeforeNumbers = ".mlc-";

// Truncates long names, so that the folder's name stays within the 255 bytes of file systems.
std::string Prefix(const fs::path& target) {
  return fmt::format(".{}{}", target.filename().string().substr(0, 200), kBeforeNumbers);
}

constexpr const char* kMarker = "mlc-staging";

bool Mark(const fs::path& folder) {
  const int file = open((folder / kMarker).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  close(file);
  return mkdir((folder / "new").c_str(), 0700) == 0;
}

// Removes the folder of a killed process. A folder without the marker belongs to someone else,
// unless it is empty: then the process died before it wrote the marker.
void RemoveDead(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(folder / kMarker, error))) {
    rmdir(folder.c_str());
    return;
  }
  for (fs::directory_iterator entry(folder / "old", error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = folder.parent_path() / entry->path().filename();
    std::error_code missing;
    if (!fs::exists(fs::symlink_status(target, missing)) &&
        rename(entry->path().c_str(), target.c_str()) != 0)
      return;  // the only copy
  }
  fs::remove_all(folder, error);
}

// A folder whose lock can be acquired has no live owner. An owner that is between creating and
// locking its folder checks the folder after locking, and creates another one if it is gone. An
// empty prefix is that of all targets.
void RemoveStale(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t dot = name.rfind(kBeforeNumbers);
    if (!name.starts_with('.') || dot == name.npos) continue;
    const size_t numbers = dot + kBeforeNumbers.size();
    if (!IsNumberPair(std::string_view(name).substr(numbers))) continue;
    if (!prefix.empty() && name.substr(0, numbers) != prefix) continue;
    if (std::optional<FileLock> lock = FileLock::TryFolder(entry->path()))
      RemoveDead(entry->path());
  }
}

void SyncTree(const fs::path& path) {
  fs::file_status status = fs::symlink_status(path);
  if (fs::is_symlink(status)) return;
  if (fs::is_directory(status))
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) SyncTree(entry.path());
  SyncToDisk(path);
}

// Swaps two paths atomically.
bool Exchange(const fs::path& a, const fs::path& b) {
#if defined(__APPLE__)
  return renamex_np(a.c_str(), b.c_str(), RENAME_SWAP) == 0;
#else
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#endif
}

// Resolves the symbolic links of a path to be created.
fs::path Followed(fs::path path) {
  constexpr int kMostLinks = 40;  // the limit of Linux
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    fs::path next = fs::read_symlink(path, error);
    if (error || links == kMostLinks)
      throw Error("file-io", "\"{}\" is a dangling or cyclic symbolic link", path.string());
    path = path.parent_path() / next;
  }
  return path;
}

}  // namespace

bool IsNumberPair(std::string_view name) {
  auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  const size_t dash = name.find('-');
  return dash != name.npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}

void Staging::RemoveAbandoned(const fs::path& folder) { RemoveStale(folder, ""); }

Staging::Staging(fs::path target, Kind kind, bool force)
    : target_(std::move(target)), kind_(kind), force_(force) {
  std::error_code error;
  InputRegistry::CheckTarget(target_);
  // "out/model.mlpackage/" has an empty file name.
  if (!target_.has_filename()) target_ = target_.parent_path();
  const fs::path given = target_;
  if (fs::path place = Followed(target_); place != target_) {
    target_ = place;
    InputRegistry::CheckTarget(target_);
  }
  std::string name = target_.filename().string();
  if (name.empty() || name == "." || name == "..")
    throw Error("file-io", "\"{}\" is not a valid output path", target_.string());
  fs::path parent = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error))
    throw Error("file-io", "cannot write \"{}\": the folder \"{}\" does not exist",
                target_.string(), parent.string());
  const std::string prefix = Prefix(target_);
  RemoveStale(parent, prefix);
  fs::file_status old = fs::symlink_status(target_, error);
  if (fs::exists(old) && !fs::is_regular_file(old) && (kind_ == kFile || !fs::is_directory(old)))
    throw Error("file-exists", "\"{}\" exists and is {}", given.string(),
                fs::is_directory(old) ? "a folder" : "not a regular file")
        .Help("choose another name");

  static std::atomic<int> counter = 0;
  while (!lock_) {
    folder_ = parent / fmt::format("{}{}-{}", prefix, getpid(), ++counter);
    ScratchFolders folders;
    if (mkdir(folder_.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      throw IoError("create a folder beside", target_);
    }
    try {
      lock_ = FileLock::WaitFolder(folder_);
      if (lock_ && !Mark(folder_)) throw IoError("create a folder beside", target_);
    } catch (const Error&) {
      std::error_code ignored;
      fs::remove_all(folder_, ignored);
      throw;
    }
    if (lock_) folders.Add(folder_);
  }
  path_ = folder_ / "new" / name;
}

Staging::~Staging() { ScratchFolders().Remove(folder_); }

void Staging::Commit() {
  try {
    if (kind_ == kFolder) SyncTree(path_);
  } catch (const fs::filesystem_error& error) {
    throw Error("file-io", error.what());
  }
  InputRegistry::CheckUnchanged();
  Install();
  if (kind_ == kFolder)
    SyncToDisk(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

void Staging::Install() {
  ScratchFolders folders;
  struct stat old, fresh;
  if (lstat(path_.c_str(), &fresh) != 0) throw IoError("find", path_);
  const bool exists = lstat(target_.c_str(), &old) == 0;
  if (exists && Exchange(path_, target_)) return;
  // Renaming a file over a file is atomic, too.
  const bool aside = exists && (S_ISDIR(old.st_mode) || S_ISDIR(fresh.st_mode));
  if (aside && !force_)
    throw Error("file-exists",
                "\"{}\" exists and cannot be replaced atomically on this file system: {}",
                target_.string(), strerror(errno))
        .Help("remove it first, or pass option 'force'");
  const fs::path kept = folder_ / "old" / target_.filename();
  if (aside &&
      (mkdir(kept.parent_path().c_str(), 0700) != 0 || rename(target_.c_str(), kept.c_str()) != 0))
    throw IoError("rename", target_).Help("remove it first");
  if (rename(path_.c_str(), target_.c_str()) != 0) {
    Error error = IoError("write", target_);
    if (aside) rename(kept.c_str(), target_.c_str());
    throw error;
  }
}

OutputFile::OutputFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) Fail("create");
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(descriptor_, bytes.data(), std::min<size_t>(bytes.size(), kMostAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EFAULT) Touch(bytes);
    if (written <= 0) Fail("write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void OutputFile::Close() {
  int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0 && errno != EINTR) Fail("write");
}

void OutputFile::Fail(const char* what) { throw IoError(what, path_); }

void SyncToDisk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) throw IoError("open", path);
#ifdef F_FULLFSYNC
  // Apple's fsync(2) leaves data in the drive's cache, unordered.
  int result = fcntl(file, F_FULLFSYNC);
  if (result != 0) result = fsync(file);
#else
  const int result = fsync(file);
#endif
  const int why = errno;
  close(file);
  errno = why;
  // Some file systems do not support synchronising folders.
  if (result != 0 && errno != EINVAL && errno != ENOTSUP) throw IoError("write", path);
}

void WriteFile(const fs::path& path, std::string_view bytes) {
  Staging staging(path, Staging::kFile);
  OutputFile file(staging.path());
  file.Write(bytes);
  file.Close();
  staging.Commit();
}

}  // namespace mlc
