// lib/cache/folder_cache.h - a content-addressed cache of the results of actions in a folder that
// many processes share: compiled models of a runner, packages and checks of builds.
//
// Layout of the cache folder:
//   ac/KEY      the record of an entry (action_record.h): its key in plain text, and its files with SHA-256 and size. KEY
//               is the SHA-256 of all parts of a CacheKey. The modification time is the time of last use. The record is
//               written last and removed first: an entry exists if its record does.
//   cas/SHA256  the files of all entries, named by content.
//   tree/KEY/   the files of an entry in loadable form, without copies: hard links to those of cas/. All are read-only.
//   index/      digests of files by inode, size and times (file_digests.h)
//   lock/KEY    locked shared by users of an entry, exclusively while it is created or removed; lock/all separates
//               removing from linking. The kernel releases the locks of a process when it ends.
//   work/       files under construction, in one locked folder for each FolderCache: PID-N
//   log         one line of JSON for each removal: time, key, model, bytes and reason (log.1: the previous log)
//   stats       counters of all processes
//   mlc-cache   marks the folder as a cache and holds its version; created first. A folder without it is never modified.
//
// Every file returned by the cache has been verified: it has the digest recorded at its creation,
// unless its size and times are unchanged since an earlier verification. A damaged entry is removed
// and created again. A process that is killed at any time leaves only complete entries and
// leftovers that the next FolderCache removes.
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

#include "lib/cache/action_record.h"
#include "lib/cache/work_folder.h"
#include "lib/support/error.h"
#include "lib/support/file_lock.h"

namespace mlc::cache {

// A removed entry.
struct Eviction {
  std::string key, model;
  uint64_t bytes = 0;  // bytes freed on disk
  std::string reason;  // "limit", "cleared", "half-written", "damaged: ..."
};

struct CacheStatistics {
  uint64_t hits = 0, misses = 0, evictions = 0, evicted_bytes = 0, damaged = 0;
  double made_seconds = 0, saved_seconds = 0;  // saved_seconds: the creation time of all hits
  // The current state.
  uint64_t entries = 0, bytes = 0, limit = 0;
};

struct CachedModel {
  std::string key, name;
  KeyParts parts;
  uint64_t bytes = 0;  // size of its files, which may be shared with other entries
  double seconds = 0;  // time to create it
  std::chrono::system_clock::time_point made, used;
  bool in_use = false;
  // Returns the value of a part; "" if there is no such part.
  std::string part(std::string_view part_name) const;
};

// Not thread-safe.
class FolderCache {
 public:
  static constexpr uint64_t kDefaultLimit = 10'000'000'000;
  // Creates the folder if it is absent or empty, and removes leftovers of ended processes. `limit`
  // is the maximum size of cas/ in bytes. Error "file-io"; "file-exists" as for Exists;
  // "overwrites-input" for a new cache inside an input.
  explicit FolderCache(std::filesystem::path folder, uint64_t limit = kDefaultLimit,
                       WallClock now = std::chrono::system_clock::now);
  ~FolderCache();
  FolderCache(const FolderCache&) = delete;
  FolderCache& operator=(const FolderCache&) = delete;

  // Returns whether `folder` is a cache; false if it is absent or empty. Creates nothing. Error
  // "file-exists" for a folder with other contents or a cache of another version, "file-io" if it
  // is not a folder.
  static bool Exists(const std::filesystem::path& folder);
  // Returns whether the folder is a cache of any version.
  static bool HasMarker(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  // Adds the digest of the file under this name (CacheKey::AddFile).
  void AddFile(CacheKey& key, std::string_view name, const std::filesystem::path& path);

  // An entry that is protected from removal while this object exists; it may outlive the
  // FolderCache.
  struct Entry {
    std::string key;
    std::filesystem::path path;  // tree/KEY/NAME
    bool hit = false;
    double seconds = 0;  // time that its creation took
    bool cached = true;  // false: a private copy that is removed with `held`
    std::shared_ptr<const void> held;
    std::vector<ActionRecord::File> files;
  };
  // Returns the entry for `key`. If there is none, `make` creates it at a path that does not exist
  // yet. If several processes request the same key, one creates the entry and the others wait. If
  // the entry is damaged and in use, a private one is created outside the cache. Exceptions of
  // `make` are passed on and leave nothing behind. Error "file-io", also if a file of the key was
  // modified meanwhile. Requesting a key from within its own `make` deadlocks.
  Entry FindOrMake(const CacheKey& key, std::string_view name,
                   const std::function<void(const std::filesystem::path& into)>& make);

  // Returns the entry for `key` if it exists and is intact.
  std::optional<Entry> Find(const CacheKey& key, std::string_view name);

  // Most recently used first.
  std::vector<CachedModel> List();
  // Evicts the least recently used entries that are not in use, until the cache takes at most
  // `limit` bytes. Returns the removed entries.
  std::vector<Eviction> Collect(uint64_t limit);
  // Removes every entry that is not in use.
  std::vector<Eviction> Clear();
  // Reads every file of every entry and removes damaged entries; those in use are returned through
  // `in_use`.
  std::vector<Eviction> Verify(std::vector<Eviction>* in_use = nullptr);
  CacheStatistics Statistics();
  // The removals by the constructor and by FindOrMake.
  const std::vector<Eviction>& evictions() const { return evictions_; }

 private:
  struct Counters;
  double Make(const CacheKey& parts, const std::filesystem::path& into,
              const std::function<void(const std::filesystem::path&)>& make);
  std::filesystem::path Place(std::string_view kind, std::string_view name) const;
  FileLock LockAll(FileLock::Kind kind) const;
  std::optional<ActionRecord> Read(const std::string& key) const;
  // Waits while another process creates the entry.
  std::optional<Entry> FindOrWait(const CacheKey& key, std::string_view name);
  // Called under the lock of the entry.
  bool IsIntact(const std::string& key, std::string_view name,
                const std::optional<ActionRecord>& record);
  std::string Damage(const std::string& key, const ActionRecord& record);
  std::vector<ActionRecord::File> Install(const std::string& key, const CacheKey& parts,
                                          std::string_view name, double seconds,
                                          const std::filesystem::path& made);
  void Remove(const std::string& key, const std::string& reason, std::vector<Eviction>& into);
  void RemoveRest(const std::string& key, const std::string& reason, std::vector<Eviction>& into);
  std::vector<Eviction> RemoveOldest(uint64_t limit, const std::string& reason);
  void RemoveHalfWritten();
  uint64_t RemoveBlob(const std::string& sha256);
  uint64_t Bytes() const;
  std::vector<std::string> Keys(std::string_view kind) const;
  void Log(const Eviction& eviction);
  Counters ReadCounters() const;
  void Count(const std::function<void(Counters&)>& change);

  std::filesystem::path folder_;
  uint64_t limit_;
  WallClock now_;
  std::shared_ptr<const WorkFolder> work_folder_;
  std::filesystem::path work_;
  std::optional<FileDigests> digests_;
  std::vector<Eviction> evictions_;
  int made_ = 0;  // number of paths used in work_
};

// Copies the result NAME of an action below `into`, an existing folder, and returns its record;
// nothing if there is none, or if it is damaged. Takes no locks and writes nothing to the cache,
// which may be any folder with ac/ and cas/, such as that of a web server.
std::optional<ActionRecord> ReadEntry(const std::filesystem::path& folder, const CacheKey& key,
                                      std::string_view name, const std::filesystem::path& into);

}  // namespace mlc::cache
