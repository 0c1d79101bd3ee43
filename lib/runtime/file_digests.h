// lib/runtime/file_digests.h - SHA-256 of files, remembered by what the file system says of them, so that what has not
// been written to is not read again.
//
// One small file for each: FOLDER/DEVICE-INODE, which holds size, times of content and of inode (nanoseconds) and the
// digest. A file is remembered only once its times lie back far enough that a later write must change them. Many
// processes at once; what is damaged counts as absent.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mlc {

struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified = 0, changed = 0;  // of the content, of the inode: nanoseconds since 1970
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
// Links are followed. Nothing where there is no regular file.
std::optional<FileIdentity> IdentityOf(const std::filesystem::path& path);

using WallClock = std::function<std::chrono::system_clock::time_point()>;

class FileDigests {
 public:
  // Both folders are there; `work` is of the same file system and belongs to this object's owner.
  FileDigests(std::filesystem::path folder, std::filesystem::path work, WallClock now);

  struct Digest {
    std::string sha256;
    FileIdentity identity;
  };
  // Error "file-io", also for what is written to all the time.
  Digest Of(const std::filesystem::path& path);
  // Bytes that had to be read.
  uint64_t hashed_bytes() const { return hashed_; }
  // Forgets all, so that every file is read again.
  void Forget();
  // Forgets what was remembered before `time`.
  void ForgetBefore(std::chrono::system_clock::time_point time);

 private:
  std::optional<std::string> Remembered(const std::filesystem::path& record,
                                        const FileIdentity& identity) const;
  std::filesystem::path folder_, work_;
  WallClock now_;
  uint64_t hashed_ = 0;
};

// Puts a file with this text in the place of `path`, in one step, by way of a file in `work`. `durable`: it is on the
// disk before it is seen. Error "file-io".
void PutFile(const std::filesystem::path& work, const std::filesystem::path& path,
             const std::string& text, bool durable);
// The text of a file of at most `most` bytes; nothing where there is none.
std::optional<std::string> TextOf(const std::filesystem::path& path, size_t most);

}  // namespace mlc
