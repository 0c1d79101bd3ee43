// lib/runtime/model_cache.h - compiled models by what they were made of. Content-addressed, shared by many processes.
//
// In the cache's folder:
//   ac/KEY      what went into an entry, in plain text, and what came out: its files with SHA-256 and size (JSON).
//               KEY is the SHA-256 over all parts of a CacheKey. Its time is when the entry was last used. An entry is
//               there when this is there: it is written last and removed first.
//   cas/SHA256  the files of all entries by content.
//   tree/KEY/   the files of an entry as they are loaded, without copying: hard links to those of cas/. All are
//               read-only.
//   index/      digests of files by inode, size and times (file_digests.h)
//   lock/KEY    locked shared by who uses an entry, exclusively by who makes or removes it; lock/all keeps those who
//               remove from those who link. The kernel ends locks with the process that has them.
//   work/       what is being made, in a locked folder for each ModelCache: PID-N
//   log         every removal: a line of JSON with time, key, model, bytes and reason (log.1: the one before)
//   stats       counters of all processes
//   mlc-cache   says that all this is a cache, and of which version; it is made first. A folder without it is somebody
//               else's.
//
// What the cache gives out was checked: every file has the digest that it was made with, as far as its size and times
// were not those under which it was found so before. A damaged entry is removed and made anew. A process that is killed
// at any moment leaves entries that are whole, and pieces that the next ModelCache removes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/runtime/file_digests.h"
#include "lib/support/error.h"
#include "lib/support/file_lock.h"

namespace mlc {

// What a compiled model depends on, by name, in the order in which it was added.
class CacheKey {
 public:
  void Add(std::string_view name, std::string_view value);
  // 64 digits.
  std::string Hex() const;
  const std::vector<std::pair<std::string, std::string>>& parts() const { return parts_; }
  // Of files that were added: they must be the same still when what is made of them is done.
  const std::map<std::filesystem::path, FileIdentity>& files() const { return files_; }

 private:
  friend class ModelCache;
  std::vector<std::pair<std::string, std::string>> parts_;
  std::map<std::filesystem::path, FileIdentity> files_;
};

// What was removed.
struct Eviction {
  std::string key, model;
  uint64_t bytes = 0;  // that the disk got back
  std::string reason;  // "limit", "cleared", "half-written", "damaged: ..."
};

struct CacheStatistics {
  uint64_t hits = 0, misses = 0, evictions = 0, evicted_bytes = 0, damaged = 0;
  double made_seconds = 0, saved_seconds = 0;  // what hits would have taken
  // Now.
  uint64_t entries = 0, bytes = 0, limit = 0;
};

struct CachedModel {
  std::string key, name;
  std::vector<std::pair<std::string, std::string>> parts;
  uint64_t bytes = 0;  // of its files; other entries may share them
  double seconds = 0;  // that making it took
  std::chrono::system_clock::time_point made, used;
  bool in_use = false;
  // The value of a part, "" without one.
  std::string part(std::string_view part_name) const;
};

// One thread at a time.
class ModelCache {
 public:
  static constexpr uint64_t kDefaultLimit = 10'000'000'000;
  // Makes the folder where it is absent or empty, and removes what processes left half-written. `limit`: bytes of cas/.
  // Error "file-io", "file-exists" as Exists says, "overwrites-input" for a new one within what is read.
  explicit ModelCache(std::filesystem::path folder, uint64_t limit = kDefaultLimit,
                      WallClock now = std::chrono::system_clock::now);
  ~ModelCache();
  ModelCache(const ModelCache&) = delete;
  ModelCache& operator=(const ModelCache&) = delete;

  // Whether `folder` is a cache; false where nothing is, or an empty folder. Makes nothing. Error "file-exists" for a
  // folder of other things and a cache of another version, "file-io" for what is no folder.
  static bool Exists(const std::filesystem::path& folder);
  // Of any version.
  static bool HasMarker(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  // Adds the digest of a file, which is what counts of it, under this name.
  void AddFile(CacheKey& key, std::string_view name, const std::filesystem::path& path);

  // An entry that nobody removes as long as this lives; it may outlive the ModelCache.
  struct Entry {
    std::string key;
    std::filesystem::path path;  // tree/KEY/NAME
    bool hit = false;
    double seconds = 0;  // that making it took, whenever that was
    bool cached = true;  // else it is in nobody's way, and goes with `held`
    std::shared_ptr<const void> held;
  };
  // What `key` stands for, made by `make` at the path that it is given, where nothing is yet, unless it is there
  // already. Of several processes that want the same at a time one makes it, and the others wait. Where it is damaged
  // and in use, it is made beside the cache's entries for this caller alone. What `make` throws is passed on, and
  // nothing stays. Error "file-io", also where a file of the key was written to meanwhile.
  // A thread that wants a key which it makes just then waits for ever.
  Entry FindOrMake(const CacheKey& key, std::string_view name,
                   const std::function<void(const std::filesystem::path& into)>& make);

  // In the order of last use, the latest first.
  std::vector<CachedModel> List();
  // Removes entries, those first that were not used for longest, until all takes at most `limit` bytes; none in use.
  // Returns what was removed.
  std::vector<Eviction> Collect(uint64_t limit);
  // Removes every entry that is not in use.
  std::vector<Eviction> Clear();
  // Reads every file of every entry, and removes the damaged, but for those in use.
  std::vector<Eviction> Verify(std::vector<Eviction>* in_use = nullptr);
  CacheStatistics Statistics();
  // What this object removed besides: the half-written at its start, and what FindOrMake did.
  const std::vector<Eviction>& evictions() const { return evictions_; }

 private:
  struct Record;
  struct Counters;
  struct Work;
  std::shared_ptr<const Work> MakeWork() const;
  double Make(const CacheKey& parts, const std::filesystem::path& into,
              const std::function<void(const std::filesystem::path&)>& make);
  std::filesystem::path Place(std::string_view kind, std::string_view name) const;
  FileLock LockAll(FileLock::Kind kind) const;
  std::optional<Record> Read(const std::string& key) const;
  std::string Damage(const std::string& key, const Record& record);
  void Install(const std::string& key, const CacheKey& parts, std::string_view name, double seconds,
               const std::filesystem::path& made);
  void Remove(const std::string& key, const std::string& reason, std::vector<Eviction>& into);
  void RemoveRest(const std::string& key, const std::string& reason, std::vector<Eviction>& into);
  std::vector<Eviction> RemoveOldest(uint64_t limit, const std::string& reason);
  void RemoveHalfWritten();
  void RemoveWork();
  uint64_t RemoveBlob(const std::string& sha256);
  uint64_t Bytes() const;
  std::vector<std::string> Keys(std::string_view kind) const;
  void Log(const Eviction& eviction);
  Counters ReadCounters() const;
  void Count(const std::function<void(Counters&)>& change);

  std::filesystem::path folder_;
  uint64_t limit_;
  WallClock now_;
  std::shared_ptr<const Work> work_folder_;
  std::filesystem::path work_;
  std::optional<FileDigests> digests_;
  std::vector<Eviction> evictions_;
  int made_ = 0;  // number of things made in work_
};

}  // namespace mlc
