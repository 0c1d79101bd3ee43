#include "lib/cache/file_digests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"

namespace mlc::cache {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kSecond + time.tv_nsec; }

int64_t Nanoseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// The time that must pass between two writes for their timestamps to differ: a tick of the kernel,
// or two seconds on file systems that store whole seconds.
int64_t Granularity(int64_t time) { return time % kSecond == 0 ? 2 * kSecond : kSecond / 10; }

std::string RecordText(const FileIdentity& identity, const std::string& sha256) {
  std::string text = fmt::format("{} {} {} {} {} {}", identity.device, identity.inode,
                                 identity.size, identity.modified, identity.changed, sha256);
  Xxh3 check;
  check.Update(text);
  return fmt::format("{} {}\n", text, check.Hex());
}

}  // namespace

std::optional<FileIdentity> IdentityOf(const fs::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
#ifdef __APPLE__
  const timespec modified = info.st_mtimespec, changed = info.st_ctimespec;
#else
  const timespec modified = info.st_mtim, changed = info.st_ctim;
#endif
  return FileIdentity{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
                      static_cast<uint64_t>(info.st_size), Nanoseconds(modified),
                      Nanoseconds(changed)};
}

FileDigests::FileDigests(fs::path folder, fs::path work, WallClock now)
    : folder_(std::move(folder)), work_(std::move(work)), now_(std::move(now)) {}

std::optional<std::string> FileDigests::Remembered(const fs::path& record,
                                                   const FileIdentity& identity) const {
  constexpr size_t kMost = 512, kDigits = 64;
  std::optional<std::string> text = TextOf(record, kMost);
  if (!text) return std::nullopt;
  // The record of this file with an empty digest.
  const std::string empty = RecordText(identity, "");
  const size_t begin = empty.rfind(' ');
  if (text->size() < begin + kDigits) return std::nullopt;
  std::string sha256 = text->substr(begin, kDigits);
  if (*text != RecordText(identity, sha256)) return std::nullopt;
  return sha256;
}

FileDigests::Digest FileDigests::Of(const fs::path& path) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const int64_t begin = Nanoseconds(now_());
    const std::optional<FileIdentity> identity = IdentityOf(path);
    if (!identity) throw Error("file-io", "cannot read \"{}\": not a regular file", path.string());
    const fs::path record = folder_ / fmt::format("{}-{}", identity->device, identity->inode);
    if (std::optional<std::string> known = Remembered(record, *identity))
      return {*known, *identity};
    std::string sha256 = Sha256OfFile(path);
    hashed_ += identity->size;
    // Creating or removing a hard link changes a timestamp of the inode but not the contents.
    std::optional<FileIdentity> after = IdentityOf(path);
    const bool same = after == identity;
    if (after) after->changed = identity->changed;
    if (after != identity) continue;
    const bool settled =
        same && std::max(identity->modified + Granularity(identity->modified),
                         identity->changed + Granularity(identity->changed)) < begin;
    try {
      if (settled) PutFile(work_, record, RecordText(*identity, sha256), false);
    } catch (const Error&) {  // disk full: the file is hashed again next time
    }
    return {std::move(sha256), *identity};
  }
  throw Error("file-io", "the file was modified while it was being read")
      .At({path.string(), ""})
      .Help("run again when no process writes to the file");
}

void FileDigests::Forget() { ForgetBefore(std::chrono::system_clock::time_point::max()); }

void FileDigests::ForgetBefore(std::chrono::system_clock::time_point time) {
  const bool all = time == std::chrono::system_clock::time_point::max();
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsNumberPair(entry->path().filename().string())) continue;
    std::optional<FileIdentity> record = IdentityOf(entry->path());
    if (all || (record && record->modified < Nanoseconds(time))) fs::remove(entry->path(), ignored);
  }
}

void PutFile(const fs::path& work, const fs::path& path, const std::string& text, bool durable) {
  static std::atomic<int> counter = 0;
  const fs::path fresh = work / fmt::format("put-{}-{}", getpid(), ++counter);
  try {
    OutputFile file(fresh);
    file.Write(text);
    file.Close();
    if (durable) SyncToDisk(fresh);
    if (rename(fresh.c_str(), path.c_str()) != 0)
      throw Error("file-io", "cannot write \"{}\": {}", path.string(), strerror(errno));
  } catch (const Error&) {
    unlink(fresh.c_str());
    throw;
  }
  if (durable) SyncToDisk(path.parent_path());
}

std::optional<std::string> TextOf(const fs::path& path, size_t most) {
  std::optional<FileIdentity> identity = IdentityOf(path);
  if (!identity || identity->size > most) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(identity->size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) return std::nullopt;
  return text;
}

}  // namespace mlc::cache
