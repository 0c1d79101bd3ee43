#include "lib/cache/folder_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"

namespace mlc::cache {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using SystemTime = std::chrono::system_clock::time_point;

namespace {

constexpr int kVersion = 1;  // version of the layout
constexpr uintmax_t kMostOfLog = 1u << 20;
constexpr auto kDigestsKept = std::chrono::hours(24 * 30);
constexpr std::string_view kFolders[] = {"ac", "cas", "tree", "index", "lock", "work"};
constexpr std::string_view kMarker = "mlc-cache";
const std::string kMarkerText = fmt::format("compiled models of mlc, version {}\n", kVersion);

Error IoError(const char* what, const fs::path& path) {
  return Error("file-io", "cannot {} \"{}\": {}", what, path.string(), strerror(errno));
}

int64_t Seconds(SystemTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

void SetTime(const fs::path& path, SystemTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(seconds.count());
  spec.tv_nsec = static_cast<long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count());
  const timespec both[2] = {spec, spec};
  utimensat(AT_FDCWD, path.c_str(), both, 0);  // a failure only affects the order of eviction
}

SystemTime FromNanoseconds(int64_t nanoseconds) {
  return SystemTime(
      std::chrono::duration_cast<SystemTime::duration>(std::chrono::nanoseconds(nanoseconds)));
}

}  // namespace

struct FolderCache::Counters {
  uint64_t hits = 0, misses = 0, evictions = 0, evicted_bytes = 0, damaged = 0;
  double made_seconds = 0, saved_seconds = 0;
};

std::string CachedModel::part(std::string_view part_name) const {
  const std::string* value = FindPart(parts, part_name);
  return value ? *value : "";
}

fs::path FolderCache::Place(std::string_view kind, std::string_view name) const {
  return folder_ / kind / name;
}

FileLock FolderCache::LockAll(FileLock::Kind kind) const {
  return FileLock::Wait(Place("lock", "all"), kind);
}

bool FolderCache::HasMarker(const fs::path& folder) {
  return IdentityOf(folder / kMarker).has_value();
}

bool FolderCache::Exists(const fs::path& folder) {
  constexpr size_t kMost = 256;
  constexpr const char* kHelp = "set MLC_CACHE_DIR or option 'cache' to an empty or new folder";
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status) && (!error || error == std::errc::no_such_file_or_directory))
    return false;
  // Checked after the other entries, because the marker is the first file of a new cache.
  const bool empty =
      fs::is_directory(status) && fs::directory_iterator(folder, error) == fs::directory_iterator();
  if (error || !fs::is_directory(status))
    throw Error("file-io", "\"{}\" cannot be used as the cache folder: {}", folder.string(),
                error ? error.message() : "not a folder")
        .Help(kHelp);
  if (empty) return false;
  const std::optional<std::string> text = TextOf(folder / kMarker, kMost);
  if (!text)
    throw Error("file-exists", "\"{}\" contains files that do not belong to a cache",
                folder.string())
        .Expected("an empty folder, or a cache (with a file \"{}\")", kMarker)
        .Help(kHelp);
  // An empty marker is being written by another process.
  if (!text->empty() && *text != kMarkerText)
    throw Error("file-exists", "\"{}\" is a cache with the format of another mlc version",
                folder.string())
        .Help("remove it, or set MLC_CACHE_DIR or option 'cache' to another folder");
  return true;
}

FolderCache::FolderCache(fs::path folder, uint64_t limit, WallClock now)
    : folder_(fs::absolute(folder)), limit_(limit), now_(std::move(now)) {
  std::error_code error;
  if (!Exists(folder_)) {
    InputRegistry::CheckTarget(folder_);
    fs::create_directories(folder_, error);
    const fs::path marker = folder_ / kMarker;
    const int file =
        error ? -1 : open(marker.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    const bool written = file >= 0 && write(file, kMarkerText.data(), kMarkerText.size()) ==
                                          static_cast<ssize_t>(kMarkerText.size());
    const int why = errno;
    if (file >= 0) close(file);
    if (!written)
      throw Error("file-io", "cannot create the cache folder \"{}\": {}", folder_.string(),
                  error ? error.message() : strerror(why))
          .Help("set MLC_CACHE_DIR to a writable folder");
  }
  for (std::string_view kind : kFolders) {
    fs::create_directories(folder_ / kind, error);
    if (error)
      throw Error("file-io", "cannot create the cache folder \"{}\": {}", (folder_ / kind).string(),
                  error.message())
          .Help("set MLC_CACHE_DIR to a writable folder");
  }
  work_folder_ = std::make_shared<const WorkFolder>(folder_ / "work");
  work_ = work_folder_->path();
  digests_.emplace(folder_ / "index", work_, now_);
  RemoveHalfWritten();
}

FolderCache::~FolderCache() = default;

void FolderCache::AddFile(CacheKey& key, std::string_view name, const fs::path& path) {
  key.AddFile(name, path, digests_->Of(path));
}

// Returns nothing if the record is absent or invalid.
std::optional<ActionRecord> FolderCache::Read(const std::string& key) const {
  const std::optional<std::string> text = TextOf(Place("ac", key), kMostOfRecord);
  return text ? Decode(*text, key) : std::nullopt;
}

// Describes the damage to an entry; empty if it is intact. The caller holds its lock. Error
// "file-io" if the check fails.
std::string FolderCache::Damage(const std::string& key, const ActionRecord& record) {
  InputRegistry::Unnoted unnoted;  // damaged files will be replaced
  try {
    const std::map<std::string, fs::path> files = FilesBelow(Place("tree", key));
    if (files.size() != record.files.size())
      return fmt::format("{} files instead of {}", files.size(), record.files.size());
    for (const ActionRecord::File& file : record.files) {
      auto it = files.find(file.path);
      if (it == files.end()) return fmt::format("\"{}\" is missing", file.path);
      const FileDigests::Digest found = digests_->Of(it->second);
      if (found.identity.size != file.size)
        return fmt::format("\"{}\" has {} bytes instead of {}", file.path, found.identity.size,
                           file.size);
      if (found.sha256 != file.sha256) return fmt::format("\"{}\" has a hash mismatch", file.path);
      const std::optional<FileIdentity> blob = IdentityOf(Place("cas", file.sha256));
      if (!blob || blob->size != file.size)
        return fmt::format("cas/{} is missing or has the wrong size", file.sha256);
    }
  } catch (const NoRegularFile& error) {
    return error.text();
  } catch (const fs::filesystem_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory ||
        error.code() == std::errc::not_a_directory)
      return error.what();
    throw Error("file-io", error.what());
  }
  return "";
}

bool FolderCache::IsIntact(const std::string& key, std::string_view name,
                           const std::optional<ActionRecord>& record) {
  return record && record->name == name && Damage(key, *record).empty();
}

std::optional<FolderCache::Entry> FolderCache::Find(const CacheKey& parts, std::string_view name) {
  return fs::exists(Place("ac", parts.Hex())) ? FindOrWait(parts, name) : std::nullopt;
}

std::optional<FolderCache::Entry> FolderCache::FindOrWait(const CacheKey& parts,
                                                          std::string_view name) {
  const std::string key = parts.Hex();
  FileLock lock = FileLock::Wait(Place("lock", key), FileLock::kShared);
  const std::optional<ActionRecord> record = Read(key);
  if (!IsIntact(key, name, record)) return std::nullopt;
  SetTime(Place("ac", key), now_());
  Count([&](Counters& all) { ++all.hits, all.saved_seconds += record->seconds; });
  return Entry{key,          Place("tree", key) / name,
               true,         record->seconds,
               true,         std::make_shared<const FileLock>(std::move(lock)),
               record->files};
}

FolderCache::Entry FolderCache::FindOrMake(const CacheKey& parts, std::string_view name,
                                           const std::function<void(const fs::path&)>& make) {
  MLC_CHECK(!name.empty() && name.find('/') == name.npos, "\"{}\" is not a file name", name);
  constexpr int kTries = 8;  // a quarter of a second in total
  const std::string key = parts.Hex();
  const fs::path place = Place("tree", key) / name;
  auto hold = [](FileLock lock) { return std::make_shared<const FileLock>(std::move(lock)); };
  for (int i = 0;; ++i) {
    if (std::optional<Entry> entry = FindOrWait(parts, name)) return *entry;
    std::optional<FileLock> lock = FileLock::Try(Place("lock", key), FileLock::kExclusive);
    if (!lock && i < kTries) {
      // Another process either checks the entry, which takes little time, or creates it, and then
      // LockAll waits for it.
      std::this_thread::sleep_for(std::chrono::milliseconds((1 << i) + getpid() % kTries));
      continue;
    }
    if (!lock) {
      const auto work = std::make_shared<const WorkFolder>(folder_ / "work");
      const double seconds = Make(parts, work->path() / name, make);
      Count([&](Counters& all) { ++all.misses, all.made_seconds += seconds; });
      return {key,
              work->path() / name,
              false,
              seconds,
              false,
              work,
              RecordFiles(work->path(), *digests_)};
    }
    const std::optional<ActionRecord> record = Read(key);
    if (IsIntact(key, name, record)) continue;  // another process created it
    RemoveRest(key, record ? "damaged: " + Damage(key, *record) : "half-written", evictions_);

    const fs::path made = work_ / fmt::format("made-{}", ++made_);
    double seconds = 0;
    std::vector<ActionRecord::File> files;
    try {
      fs::create_directory(made);
      seconds = Make(parts, made / name, make);
      files = Install(key, parts, name, seconds, made);
    } catch (const fs::filesystem_error& error) {
      std::error_code ignored;
      fs::remove_all(made, ignored);
      throw Error("file-io", error.what());
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(made, ignored);
      throw;
    }
    Count([&](Counters& all) { ++all.misses, all.made_seconds += seconds; });
    bool shared;
    {
      // Downgrading the lock of the entry releases it for a moment; this lock prevents a removal
      // meanwhile.
      FileLock all = LockAll(FileLock::kShared);
      shared = lock->Share();
    }
    if (!shared) continue;
    digests_->ForgetBefore(now_() - kDigestsKept);
    for (Eviction& eviction : RemoveOldest(limit_, "limit"))
      evictions_.push_back(std::move(eviction));
    return {key, place, false, seconds, true, hold(std::move(*lock)), std::move(files)};
  }
}

// Returns elapsed seconds.
double FolderCache::Make(const CacheKey& parts, const fs::path& into,
                         const std::function<void(const fs::path&)>& make) {
  const auto begin = std::chrono::steady_clock::now();
  make(into);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  parts.RequireUnchanged();
  return seconds;
}

std::vector<ActionRecord::File> FolderCache::Install(const std::string& key, const CacheKey& parts,
                                                     std::string_view name, double seconds,
                                                     const fs::path& made) {
  InputRegistry::Unnoted unnoted;
  ActionRecord record{.name = std::string(name), .parts = parts.parts()};
  if (!fs::exists(made / name))
    throw Error("file-io", "the compiler created nothing at \"{}\"", (made / name).string());
  for (const auto& [path, file] : FilesBelow(made)) {
    if (chmod(file.c_str(), 0444) != 0) throw IoError("change", file);
    SyncToDisk(file);
  }
  record.files = RecordFiles(made, *digests_);
  {
    FileLock all = LockAll(FileLock::kShared);
    for (const ActionRecord::File& file : record.files) {
      const fs::path blob = Place("cas", file.sha256), own = made / file.path,
                     link = work_ / "link";
      if (::link(own.c_str(), blob.c_str()) == 0) continue;
      if (errno != EEXIST)
        throw IoError("link the file into the cache:", own)
            .Help(
                "the cache requires a file system with hard links; set MLC_CACHE_DIR to a folder "
                "on such a file system");
      // Links to an existing file with the same contents, unless that file is damaged or has the
      // maximum number of links.
      bool whole = false;
      try {
        whole = digests_->Of(blob).sha256 == file.sha256;
      } catch (const Error&) {
      }
      const fs::path& from = whole ? blob : own;
      const fs::path& to = whole ? own : blob;
      unlink(link.c_str());
      if (::link(from.c_str(), link.c_str()) != 0) {
        if (errno == EMLINK) continue;
        throw IoError("link the file into the cache:", from);
      }
      if (rename(link.c_str(), to.c_str()) != 0) throw IoError("write", to);
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(made))
      if (entry.is_directory()) SyncToDisk(entry.path());
    SyncToDisk(made);
    SyncToDisk(folder_ / "cas");
    fs::rename(made, Place("tree", key));
    SyncToDisk(folder_ / "tree");
  }
  record.made = Seconds(now_());
  record.seconds = seconds;
  PutFile(work_, Place("ac", key), Encode(record), true);
  SetTime(Place("ac", key), now_());
  return std::move(record.files);
}

// Removes a file that no tree refers to any more. Returns the bytes freed.
uint64_t FolderCache::RemoveBlob(const std::string& sha256) {
  const fs::path blob = Place("cas", sha256);
  struct stat info;
  if (lstat(blob.c_str(), &info) != 0 || info.st_nlink > 1 || unlink(blob.c_str()) != 0) return 0;
  return static_cast<uint64_t>(info.st_size);
}

// The caller holds lock/all and, exclusively, the lock of the entry.
void FolderCache::Remove(const std::string& key, const std::string& reason,
                         std::vector<Eviction>& into) {
  Eviction eviction{.key = key, .reason = reason};
  std::set<std::string> blobs;
  if (std::optional<ActionRecord> record = Read(key)) {
    eviction.model = record->model();
    for (const ActionRecord::File& file : record->files) blobs.insert(file.sha256);
  } else {
    // The contents of the entry are unknown, so all files are checked.
    for (std::string& sha256 : Keys("cas")) blobs.insert(std::move(sha256));
  }
  std::error_code error;
  fs::remove(Place("ac", key), error);
  if (error)
    throw Error("file-io", "cannot remove \"{}\": {}", Place("ac", key).string(), error.message());
  fs::remove_all(Place("tree", key), error);
  for (const std::string& sha256 : blobs)
    if (IsSha256(sha256)) eviction.bytes += RemoveBlob(sha256);
  Log(eviction);
  Count([&](Counters& all) { ++all.evictions, all.evicted_bytes += eviction.bytes; });
  into.push_back(std::move(eviction));
}

// Removes the remains of an incomplete entry; the caller holds its lock exclusively. No deadlock:
// holders of lock/all never wait for the lock of an entry.
void FolderCache::RemoveRest(const std::string& key, const std::string& reason,
                             std::vector<Eviction>& into) {
  if (!fs::exists(fs::symlink_status(Place("ac", key))) &&
      !fs::exists(fs::symlink_status(Place("tree", key))))
    return;
  FileLock all = LockAll(FileLock::kExclusive);
  Remove(key, reason, into);
  if (reason.starts_with("damaged")) Count([](Counters& sum) { ++sum.damaged; });
}

std::vector<std::string> FolderCache::Keys(std::string_view kind) const {
  std::vector<std::string> keys;
  std::error_code error;
  for (fs::directory_iterator entry(folder_ / kind, error), end; !error && entry != end;
       entry.increment(error))
    if (std::string name = entry->path().filename().string(); IsSha256(name)) keys.push_back(name);
  std::ranges::sort(keys);
  return keys;
}

uint64_t FolderCache::Bytes() const {
  uint64_t sum = 0;
  for (const std::string& sha256 : Keys("cas"))
    if (std::optional<FileIdentity> blob = IdentityOf(Place("cas", sha256))) sum += blob->size;
  return sum;
}

std::vector<Eviction> FolderCache::RemoveOldest(uint64_t limit, const std::string& reason) {
  std::vector<Eviction> removed;
  uint64_t bytes = Bytes();
  if (bytes <= limit && limit > 0) return removed;
  FileLock all = LockAll(FileLock::kExclusive);
  std::vector<std::pair<int64_t, std::string>> oldest;
  for (std::string& key : Keys("ac"))
    if (std::optional<FileIdentity> record = IdentityOf(Place("ac", key)))
      oldest.emplace_back(record->modified, std::move(key));
  std::ranges::sort(oldest);
  bytes = Bytes();
  for (const auto& [used, key] : oldest) {
    if (bytes <= limit && limit > 0) break;
    std::optional<FileLock> lock = FileLock::Try(Place("lock", key), FileLock::kExclusive);
    if (!lock) continue;
    Remove(key, reason, removed);
    bytes -= std::min(bytes, removed.back().bytes);
    lock->RemoveFile();
  }
  return removed;
}

void FolderCache::RemoveHalfWritten() {
  WorkFolder::RemoveStale(folder_ / "work");
  // If another process is cleaning up, it does so for all.
  std::optional<FileLock> all = FileLock::Try(Place("lock", "all"), FileLock::kExclusive);
  if (!all) return;
  const std::vector<std::string> entries = Keys("ac"), trees = Keys("tree");
  std::vector<std::string> halves;
  std::set_symmetric_difference(entries.begin(), entries.end(), trees.begin(), trees.end(),
                                std::back_inserter(halves));
  for (const std::string& key : halves) {
    // A process that is creating the entry holds this lock.
    std::optional<FileLock> lock = FileLock::Try(Place("lock", key), FileLock::kExclusive);
    if (!lock || (fs::exists(Place("ac", key)) && fs::exists(Place("tree", key)))) continue;
    Remove(key, "half-written", evictions_);
    lock->RemoveFile();
  }
  uint64_t bytes = 0;
  for (const std::string& sha256 : Keys("cas")) bytes += RemoveBlob(sha256);
  if (bytes > 0) {
    evictions_.push_back({"", "", bytes, "half-written"});
    Log(evictions_.back());
    Count([&](Counters& sum) { ++sum.evictions, sum.evicted_bytes += bytes; });
  }
  for (const std::string& key : Keys("lock"))
    if (!std::ranges::binary_search(entries, key))
      if (std::optional<FileLock> lock = FileLock::Try(Place("lock", key), FileLock::kExclusive);
          lock && !fs::exists(Place("ac", key)))
        lock->RemoveFile();
}

std::vector<CachedModel> FolderCache::List() {
  std::vector<CachedModel> models;
  for (const std::string& key : Keys("ac")) {
    std::optional<ActionRecord> record = Read(key);
    std::optional<FileIdentity> file = IdentityOf(Place("ac", key));
    if (!record || !file) continue;
    CachedModel model{.key = key,
                      .name = record->name,
                      .parts = record->parts,
                      .bytes = record->bytes(),
                      .seconds = record->seconds};
    model.made = SystemTime(std::chrono::seconds(record->made));
    model.used = FromNanoseconds(file->modified);
    model.in_use = !FileLock::Try(Place("lock", key), FileLock::kExclusive);
    models.push_back(std::move(model));
  }
  std::ranges::stable_sort(
      models, [](const CachedModel& a, const CachedModel& b) { return a.used > b.used; });
  return models;
}

std::vector<Eviction> FolderCache::Collect(uint64_t limit) {
  digests_->ForgetBefore(now_() - kDigestsKept);
  return limit == 0 ? Clear() : RemoveOldest(limit, "limit");
}

std::vector<Eviction> FolderCache::Clear() {
  digests_->Forget();
  return RemoveOldest(0, "cleared");
}

std::vector<Eviction> FolderCache::Verify(std::vector<Eviction>* in_use) {
  std::vector<Eviction> removed;
  digests_->Forget();
  for (const std::string& key : Keys("ac")) {
    std::string damage;
    {
      FileLock lock = FileLock::Wait(Place("lock", key), FileLock::kShared);
      std::optional<ActionRecord> record = Read(key);
      if (!record && !fs::exists(Place("ac", key))) continue;
      damage = record ? Damage(key, *record) : "unreadable record";
    }
    if (damage.empty()) continue;
    std::optional<FileLock> lock = FileLock::Try(Place("lock", key), FileLock::kExclusive);
    std::optional<ActionRecord> record = Read(key);
    if (!lock) {
      if (in_use) in_use->push_back({key, record ? record->model() : "", 0, "damaged: " + damage});
      continue;
    }
    if (record && Damage(key, *record).empty()) continue;
    RemoveRest(key, "damaged: " + damage, removed);
  }
  return removed;
}

// Skips the log if the disk is full, because removing entries must still work then.
void FolderCache::Log(const Eviction& eviction) {
  const fs::path log = folder_ / "log";
  std::error_code ignored;
  if (fs::file_size(log, ignored) > kMostOfLog && !ignored)
    fs::rename(log, folder_ / "log.1", ignored);
  const std::string line = JsonText(Json{{"time", Seconds(now_())},
                                         {"reason", eviction.reason},
                                         {"bytes", eviction.bytes},
                                         {"key", eviction.key},
                                         {"model", eviction.model}},
                                    -1, BadUtf8::kReplace) +
                           "\n";
  // A single append, so that lines of different processes do not mix.
  const int file = open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

namespace {
template <class Counters, class Fn>
void ForEachCounter(Counters& all, Fn&& fn) {
  fn("hits", all.hits);
  fn("misses", all.misses);
  fn("evictions", all.evictions);
  fn("evicted_bytes", all.evicted_bytes);
  fn("damaged", all.damaged);
  fn("made_seconds", all.made_seconds);
  fn("saved_seconds", all.saved_seconds);
}
}  // namespace

FolderCache::Counters FolderCache::ReadCounters() const {
  constexpr size_t kMost = 1 << 16;
  Counters all;
  // Unreadable counters start at zero.
  const Json json = ParseJsonIfValid(TextOf(folder_ / "stats", kMost).value_or(""));
  if (json.is_object())
    ForEachCounter(all, [&](const char* name, auto& counter) {
      if (json.contains(name) && json[name].is_number()) counter = json[name];
    });
  return all;
}

// Failures to write are ignored.
void FolderCache::Count(const std::function<void(Counters&)>& change) {
  try {
    FileLock lock = FileLock::Wait(Place("lock", "stats"), FileLock::kExclusive);
    Counters all = ReadCounters();
    change(all);
    Json json = Json::object();
    ForEachCounter(all, [&](const char* name, auto& counter) { json[name] = counter; });
    PutFile(work_, folder_ / "stats", JsonText(json) + "\n", false);
  } catch (const Error&) {
  }
}

CacheStatistics FolderCache::Statistics() {
  const Counters all = ReadCounters();
  CacheStatistics found{all.hits,
                        all.misses,
                        all.evictions,
                        all.evicted_bytes,
                        all.damaged,
                        all.made_seconds,
                        all.saved_seconds,
                        0,
                        0,
                        0};
  found.entries = Keys("ac").size();
  found.bytes = Bytes();
  found.limit = limit_;
  return found;
}

std::optional<ActionRecord> ReadEntry(const fs::path& folder, const CacheKey& key,
                                      std::string_view name, const fs::path& into) {
  const std::string hex = key.Hex();
  const std::optional<std::string> text = TextOf(folder / "ac" / hex, kMostOfRecord);
  std::optional<ActionRecord> record = text ? Decode(*text, hex) : std::nullopt;
  if (!record || record->name != name) return std::nullopt;
  std::error_code error;
  for (const ActionRecord::File& file : record->files) {
    fs::create_directories((into / file.path).parent_path());
    fs::copy_file(folder / "cas" / file.sha256, into / file.path, error);
    if (error) return std::nullopt;
    fs::permissions(into / file.path, fs::perms::owner_write, fs::perm_options::add);
  }
  if (!SameFiles(into, name, record->files)) return std::nullopt;
  return record;
}

}  // namespace mlc::cache
