// lib/cache/file_digests.h - a persistent cache of the SHA-256 of files, keyed by file system
// metadata, so that unmodified files are not read again.
//
// Each file has a record FOLDER/DEVICE-INODE with its size, its modification and inode change times
// (nanoseconds) and its digest. A file is recorded only when these times are old enough that any
// later write must change them. Safe for concurrent processes; a damaged record counts as absent.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace mlc::cache {

struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified = 0, changed = 0;  // mtime and ctime, in nanoseconds since 1970
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
// Follows links. Returns nothing if there is no regular file.
std::optional<FileIdentity> IdentityOf(const std::filesystem::path& path);

using WallClock = std::function<std::chrono::system_clock::time_point()>;

// Thread-safe.
class FileDigests {
 public:
  // Both folders must exist and be on the same file system; `work` is private to the owner of this
  // object.
  FileDigests(std::filesystem::path folder, std::filesystem::path work, WallClock now);

  struct Digest {
    std::string sha256;
    FileIdentity identity;
  };
  // Error "file-io", also if the file keeps changing.
  Digest Of(const std::filesystem::path& path);
  // The number of bytes read for hashing.
  uint64_t hashed_bytes() const { return hashed_; }
  // Removes all records, so that every file is read again.
  void Forget();
  // Removes the records written before `time`.
  void ForgetBefore(std::chrono::system_clock::time_point time);

 private:
  std::optional<std::string> Remembered(const std::filesystem::path& record,
                                        const FileIdentity& identity) const;
  std::filesystem::path folder_, work_;
  WallClock now_;
  std::atomic<uint64_t> hashed_ = 0;
};

// Atomically replaces `path` by a file with this text, using a temporary file in `work`. With
// `durable`, the contents are synced to disk before the file becomes visible. Error "file-io".
void PutFile(const std::filesystem::path& work, const std::filesystem::path& path,
             const std::string& text, bool durable);
// Returns the text of a file of at most `most` bytes; nothing if there is no such file.
std::optional<std::string> TextOf(const std::filesystem::path& path, size_t most);

}  // namespace mlc::cache
