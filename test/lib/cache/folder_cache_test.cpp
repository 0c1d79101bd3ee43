#include "lib/cache/folder_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "lib/support/build_id.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("model_cache_test_" + std::to_string(getpid()));
  TempFolder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~TempFolder() { fs::remove_all(path); }
};

void Write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
// Overwrites a read-only file of the cache.
void Spoil(const fs::path& path, const std::string& text) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  Write(path, text);
}
int FilesIn(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

CacheKey KeyOf(const std::string& model, const std::string& units = "cpu") {
  CacheKey key;
  key.Add("model", model);
  key.Add("units", units);
  return key;
}

// Creates a bundle of two files and counts the calls.
struct Maker {
  std::string text = "weights";
  int made = 0;
  void operator()(const fs::path& into) {
    ++made;
    fs::create_directories(into / "weights");
    Write(into / "model.mil", "program " + text);
    Write(into / "weights" / "weight.bin", text);
  }
};

FolderCache::Entry Get(FolderCache& cache, const CacheKey& key, Maker& maker) {
  return cache.FindOrMake(key, "m.mlmodelc", std::ref(maker));
}

std::string Blob(const FolderCache& cache, const std::string& text) {
  Sha256 hash;
  hash.Update(text);
  return (cache.folder() / "cas" / hash.Hex()).string();
}

// Runs `fn` in a child process; returns its exit code, or minus the signal that ended it.
template <class Fn>
pid_t Fork(Fn&& fn) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = fn();
  } catch (...) {
  }
  _exit(code);
}
int Wait(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_CASE("cache keys of different lists of parts differ") {
  CacheKey a, b, c;
  a.Add("x", "1"), a.Add("y", "");
  b.Add("x", "1y"), b.Add("", "");
  c.Add("y", ""), c.Add("x", "1");
  CHECK(a.Hex().size() == 64);
  CHECK(a.Hex() != b.Hex());
  CHECK(a.Hex() != c.Hex());
}

TEST_CASE("cache: an entry is created once and then found, also by another FolderCache") {
  TempFolder temp;
  Maker maker;
  {
    FolderCache cache(temp.path / "c");
    FolderCache::Entry first = Get(cache, KeyOf("a"), maker);
    CHECK_FALSE(first.hit);
    CHECK(first.path.filename() == "m.mlmodelc");
    CHECK(ReadAll(first.path / "weights" / "weight.bin") == "weights");
    CHECK(Get(cache, KeyOf("a"), maker).hit);
  }
  FolderCache cache(temp.path / "c");
  CHECK(Get(cache, KeyOf("a"), maker).hit);
  CHECK(maker.made == 1);
  CHECK_FALSE(Get(cache, KeyOf("a", "gpu"), maker).hit);
  CHECK(maker.made == 2);
  const CacheStatistics found = cache.Statistics();
  CHECK(found.hits == 2);
  CHECK(found.misses == 2);
  CHECK(found.entries == 2);
  CHECK(found.bytes == std::string("program weights"
                                   "weights")
                           .size());  // shared by both
  CHECK(cache.evictions().empty());
}

TEST_CASE("cache: entries are loaded in place, as hard links to cas") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Maker maker;
  FolderCache::Entry entry = Get(cache, KeyOf("a"), maker);
  const auto file = IdentityOf(entry.path / "weights" / "weight.bin");
  const auto blob = IdentityOf(Blob(cache, "weights"));
  REQUIRE(blob);
  CHECK(file->inode == blob->inode);
  CHECK((fs::status(Blob(cache, "weights")).permissions() & fs::perms::owner_write) ==
        fs::perms::none);
  CHECK(ReadAll(cache.folder() / "ac" / entry.key).find("\"model\"") != std::string::npos);
}

TEST_CASE("cache: a copied file hits, a modified file of the same size misses") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Maker maker;
  const fs::path model = temp.path / "model";
  auto key = [&](const fs::path& path) {
    CacheKey made;
    cache.AddFile(made, "model", path);
    return made;
  };
  Write(model, "abcd");
  const fs::file_time_type time = fs::last_write_time(model);
  Get(cache, key(model), maker);
  fs::last_write_time(model, time + 10s);
  CHECK(Get(cache, key(model), maker).hit);
  fs::copy_file(model, temp.path / "copy");
  CHECK(Get(cache, key(temp.path / "copy"), maker).hit);
  // The same size, path and modification time.
  Write(model, "abce");
  fs::last_write_time(model, time);
  CHECK_FALSE(Get(cache, key(model), maker).hit);
}

TEST_CASE("file digests: unmodified files are not read again") {
  TempFolder temp;
  fs::create_directories(temp.path / "index");
  fs::create_directories(temp.path / "work");
  auto now = std::chrono::system_clock::now() + 1h;
  FileDigests digests(temp.path / "index", temp.path / "work", [&] { return now; });
  Write(temp.path / "f", "abc");
  const std::string abc =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // FIPS 180-4
  CHECK(digests.Of(temp.path / "f").sha256 == abc);
  CHECK(digests.hashed_bytes() == 3);
  CHECK(digests.Of(temp.path / "f").sha256 == abc);
  CHECK(digests.hashed_bytes() == 3);
  // Found by inode, independent of the name.
  fs::create_hard_link(temp.path / "f", temp.path / "g");
  digests.Of(temp.path / "g");  // its times have changed
  const uint64_t before = digests.hashed_bytes();
  CHECK(digests.Of(temp.path / "f").sha256 == abc);
  CHECK(digests.hashed_bytes() == before);
  SECTION("a damaged record counts as absent") {
    for (const auto& record : fs::directory_iterator(temp.path / "index")) {
      std::string text = ReadAll(record.path());
      text[text.size() / 2] ^= 1;
      Write(record.path(), text);
    }
    CHECK(digests.Of(temp.path / "f").sha256 == abc);
    CHECK(digests.hashed_bytes() > before);
  }
  SECTION("modified in place with the old modification time") {
    const fs::file_time_type time = fs::last_write_time(temp.path / "f");
    Write(temp.path / "f", "abd");
    fs::last_write_time(temp.path / "f", time);
    CHECK(digests.Of(temp.path / "f").sha256 != abc);
  }
  SECTION("forgotten") {
    digests.Forget();
    CHECK(FilesIn(temp.path / "index") == 0);
  }
}

TEST_CASE("file digests: recently modified files are not cached") {
  TempFolder temp;
  fs::create_directories(temp.path / "index");
  fs::create_directories(temp.path / "work");
  Write(temp.path / "f", "abc");
  // The clock is at the time of the last write.
  const auto written = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(IdentityOf(temp.path / "f")->changed)));
  FileDigests digests(temp.path / "index", temp.path / "work", [&] { return written; });
  digests.Of(temp.path / "f");
  CHECK(FilesIn(temp.path / "index") == 0);
}

TEST_CASE("file digests: creating a hard link does not count as modification") {
  TempFolder temp;
  fs::create_directory(temp.path / "index");
  Write(temp.path / "f", std::string(1 << 20, 'x'));
  std::atomic<bool> done = false;
  std::thread links([&] {
    while (!done) {
      fs::create_hard_link(temp.path / "f", temp.path / "l");
      fs::remove(temp.path / "l");
    }
  });
  FileDigests digests(temp.path / "index", temp.path, std::chrono::system_clock::now);
  int failed = 0;
  for (int i = 0; i < 50; ++i)
    failed += test::RefusalId([&] { digests.Of(temp.path / "f"); }) != "";
  done = true;
  links.join();
  CHECK(failed == 0);
}

TEST_CASE("cache: an entry is not stored if a file of its key was modified meanwhile") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Write(temp.path / "model", "abcd");
  CacheKey key;
  cache.AddFile(key, "model", temp.path / "model");
  Maker maker;
  CHECK(test::Refusal([&] {
          cache.FindOrMake(key, "m.mlmodelc", [&](const fs::path& into) {
            Write(temp.path / "model", "efgh");
            maker(into);
          });
        }).find("file-io") != std::string::npos);
  CHECK(cache.List().empty());
}

TEST_CASE("cache: an exception during creation is passed on and leaves nothing behind") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  CHECK_THROWS_AS(cache.FindOrMake(KeyOf("a"), "m.mlmodelc",
                                   [](const fs::path& into) {
                                     Maker()(into);
                                     throw Error("runtime-failed", "no");
                                   }),
                  Error);
  CHECK_THROWS_AS(cache.FindOrMake(KeyOf("a"), "m.mlmodelc", [](const fs::path&) {}), Error);
  CHECK(FilesIn(temp.path / "c" / "tree") == 0);
  CHECK(FilesIn(temp.path / "c" / "cas") == 0);
  Maker maker;
  CHECK_FALSE(Get(cache, KeyOf("a"), maker).hit);
}

TEST_CASE("cache: damaged entries are recreated") {
  TempFolder temp;
  // The times of files are old enough for the index to trust them.
  FolderCache cache(temp.path / "c", FolderCache::kDefaultLimit,
                    [] { return std::chrono::system_clock::now() + 1h; });
  Maker maker;
  fs::path path, record;
  {
    FolderCache::Entry entry = Get(cache, KeyOf("a"), maker);
    path = entry.path;
    record = cache.folder() / "ac" / entry.key;
  }
  Get(cache, KeyOf("a"), maker);  // the digests are cached now
  const fs::path weights = path / "weights" / "weight.bin";
  SECTION("a blob with different contents") { Spoil(weights, "weightz"); }
  SECTION("a truncated blob") { Spoil(weights, "weig"); }
  SECTION("a missing file") { fs::remove(weights); }
  SECTION("an extra file") { Write(path / "more", ""); }
  SECTION("a link instead of a file") {
    fs::remove(weights);
    fs::create_symlink(Blob(cache, "weights"), weights);
  }
  SECTION("a missing blob") { fs::remove(Blob(cache, "weights")); }
  SECTION("a missing tree") { fs::remove_all(path.parent_path()); }
  SECTION("a truncated record") {
    const std::string text = ReadAll(record);
    Write(record, text.substr(0, text.size() / 2));
  }
  SECTION("a record with another digest") {
    std::string text = ReadAll(record);
    const size_t at = text.find("\"sha256\": \"") + 11;
    text[at] = text[at] == '0' ? '1' : '0';
    Write(record, text);
  }
  SECTION("a record with another part") {
    std::string text = ReadAll(record);
    text.replace(text.find("\"cpu\""), 5, "\"gpu\"");
    Write(record, text);
  }
  CHECK(maker.made == 1);
  FolderCache::Entry entry = Get(cache, KeyOf("a"), maker);
  CHECK_FALSE(entry.hit);
  CHECK(maker.made == 2);
  CHECK(ReadAll(weights) == "weights");
  CHECK(ReadAll(Blob(cache, "weights")) == "weights");
  CHECK(cache.evictions().size() == 1);
  CHECK(FilesIn(path) == 2);
}

TEST_CASE("cache: a damaged file shared by two entries is replaced in both") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Maker maker;
  for (const char* model : {"a", "b"}) Get(cache, KeyOf(model), maker);
  Spoil(Blob(cache, "weights"), "weightz");
  for (const char* model : {"a", "b"}) {
    FolderCache::Entry entry = Get(cache, KeyOf(model), maker);
    CHECK_FALSE(entry.hit);
    CHECK(ReadAll(entry.path / "weights" / "weight.bin") == "weights");
  }
  CHECK(cache.Statistics().damaged == 2);
}

TEST_CASE("cache: a damaged entry in use does not block others") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Maker maker;
  std::optional<FolderCache::Entry> used = Get(cache, KeyOf("a"), maker);
  Spoil(used->path / "weights" / "weight.bin", "weightz");
  fs::path own;
  {
    // Even by the thread that uses it.
    const FolderCache::Entry second = Get(cache, KeyOf("a"), maker);
    own = second.path;
    CHECK_FALSE(second.hit);
    CHECK_FALSE(second.cached);
    CHECK(ReadAll(own / "weights" / "weight.bin") == "weights");
    { FolderCache other(temp.path / "c"); }
    CHECK(fs::exists(own));
  }
  CHECK_FALSE(fs::exists(own));
  std::vector<Eviction> in_use;
  CHECK(cache.Verify(&in_use).empty());
  REQUIRE(in_use.size() == 1);
  CHECK(in_use[0].model == "a");
  used.reset();
  CHECK(Get(cache, KeyOf("a"), maker).cached);
  CHECK(cache.Verify().empty());
}

TEST_CASE("cache: Verify reads all entries and removes damaged ones") {
  TempFolder temp;
  FolderCache cache(temp.path / "c");
  Maker good{"good"}, bad{"bad"};
  Get(cache, KeyOf("a"), good);
  Get(cache, KeyOf("b"), bad);
  CHECK(cache.Verify().empty());
  Spoil(Blob(cache, "bad"), "bed");
  const std::vector<Eviction> removed = cache.Verify();
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].model == "b");
  CHECK(removed[0].reason.starts_with("damaged: "));
  CHECK(cache.List().size() == 1);
}

TEST_CASE("cache evicts least recently used entries, but none in use") {
  TempFolder temp;
  auto now = std::chrono::system_clock::now();
  // Three entries of slightly more than a thousand bytes; a fourth exceeds the limit.
  FolderCache cache(temp.path / "c", 3100, [&] { return now += 1s; });
  auto get = [&](const std::string& model) {
    return cache.FindOrMake(KeyOf(model), "m.mlmodelc", [&](const fs::path& into) {
      fs::create_directory(into);
      Write(into / "w", model + std::string(1000, '.'));
    });
  };
  auto models = [&] {
    std::string all;
    for (const CachedModel& model : cache.List()) all += model.part("model");
    return all;
  };
  for (const char* model : {"a", "b", "c"}) get(model);
  CHECK(models() == "cba");
  CHECK(get("a").hit);
  get("d");
  CHECK(models() == "dac");
  REQUIRE(cache.evictions().size() == 1);
  CHECK(cache.evictions()[0].model == "b");
  CHECK(cache.evictions()[0].bytes == 1001);
  CHECK(cache.evictions()[0].reason == "limit");
  CHECK(ReadAll(cache.folder() / "log").find("\"reason\":\"limit\",\"bytes\":1001") !=
        std::string::npos);
  {
    FolderCache::Entry used = get("c"), kept = get("a"), fourth = get("d");
    CHECK(cache.List()[0].in_use);
    get("e");  // all other entries are in use
    CHECK(models() == "edac");
    CHECK(cache.Clear().size() == 1);
    CHECK(ReadAll(used.path / "w").starts_with("c."));
  }
  CHECK(cache.Collect(1500).size() == 2);
  CHECK(models() == "d");
  CHECK(cache.Clear().size() == 1);
  CHECK(FilesIn(cache.folder() / "cas") == 0);
  CHECK(FilesIn(cache.folder() / "tree") == 0);
  CHECK(cache.Statistics().evicted_bytes == 5 * 1001);
}

TEST_CASE(
    "cache: an entry with an unreadable record is removed with its files, and no other entry is") {
  TempFolder temp;
  auto now = std::chrono::system_clock::now();
  FolderCache cache(temp.path / "c", 1'000'000, [&] { return now += 1s; });
  std::string oldest;
  for (const char* model : {"a", "b", "c"}) {
    const FolderCache::Entry entry =
        cache.FindOrMake(KeyOf(model), "m.mlmodelc", [&](const fs::path& into) {
          fs::create_directory(into);
          Write(into / "w", model + std::string(1000, '.'));
        });
    if (oldest.empty()) oldest = entry.key;
  }
  const fs::path record = cache.folder() / "ac" / oldest;
  const fs::file_time_type used = fs::last_write_time(record);
  Write(record, "{");
  fs::last_write_time(record, used);
  const std::vector<Eviction> removed = cache.Collect(2100);
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].bytes == 1001);
  CHECK(cache.List().size() == 2);
}

TEST_CASE("cache: an entry may outlive its FolderCache") {
  TempFolder temp;
  Maker maker;
  std::optional<FolderCache::Entry> entry;
  {
    FolderCache cache(temp.path / "c");
    entry = Get(cache, KeyOf("a"), maker);
  }
  FolderCache other(temp.path / "c");
  CHECK(other.Clear().empty());
  entry.reset();
  CHECK(other.Clear().size() == 1);
}

TEST_CASE("cache: two processes with the same key create the entry once") {
  TempFolder temp;
  const fs::path count = temp.path / "made";
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i)
    children.push_back(Fork([&] {
      FolderCache cache(temp.path / "c");
      FolderCache::Entry entry =
          cache.FindOrMake(KeyOf("a"), "m.mlmodelc", [&](const fs::path& into) {
            const int file = open(count.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
            if (write(file, "x", 1) != 1) _exit(98);
            close(file);
            Maker()(into);
          });
      return ReadAll(entry.path / "weights" / "weight.bin") == "weights" ? 0 : 1;
    }));
  for (pid_t child : children) CHECK(Wait(child) == 0);
  CHECK(ReadAll(count) == "x");
  FolderCache cache(temp.path / "c");
  CHECK(cache.Statistics().hits == 5);
  CHECK(cache.Statistics().misses == 1);
  CHECK(FilesIn(cache.folder() / "work") == 1);  // its own
}

TEST_CASE("cache: a process killed during creation leaves nothing behind and blocks nobody") {
  TempFolder temp;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = Fork([&] {
    FolderCache cache(temp.path / "c");
    cache.FindOrMake(KeyOf("a"), "m.mlmodelc", [&](const fs::path& into) {
      Maker()(into);
      if (write(ready[1], "x", 1) != 1) _exit(98);
      pause();
    });
    return 1;
  });
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  {
    // It is not removed while its owner is alive.
    FolderCache other(temp.path / "c");
    CHECK(FilesIn(other.folder() / "work") == 2);
  }
  kill(child, SIGKILL);
  CHECK(Wait(child) == -SIGKILL);
  FolderCache cache(temp.path / "c");
  CHECK(FilesIn(cache.folder() / "work") == 1);
  Maker maker;
  CHECK_FALSE(Get(cache, KeyOf("a"), maker).hit);
  close(ready[0]), close(ready[1]);
}

TEST_CASE("cache: the constructor removes incomplete entries") {
  TempFolder temp;
  Maker maker;
  std::string key;
  {
    FolderCache cache(temp.path / "c");
    key = Get(cache, KeyOf("a"), maker).key;
  }
  const fs::path folder = temp.path / "c";
  SECTION("a tree without its record") { fs::remove(folder / "ac" / key); }
  SECTION("a record without its tree") { fs::remove_all(folder / "tree" / key); }
  SECTION("a tree that another process is creating is kept") {
    fs::remove(folder / "ac" / key);
    FileLock maker_lock = FileLock::Wait(folder / "lock" / key, FileLock::kExclusive);
    FolderCache other(folder);
    CHECK(fs::exists(folder / "tree" / key));
  }
  FolderCache cache(folder);
  CHECK_FALSE(fs::exists(folder / "ac" / key));
  CHECK_FALSE(fs::exists(folder / "tree" / key));
  CHECK_FALSE(fs::exists(folder / "lock" / key));
  CHECK(FilesIn(folder / "cas") == 0);
  REQUIRE_FALSE(cache.evictions().empty());
  uint64_t bytes = 0;
  for (const Eviction& eviction : cache.evictions()) {
    CHECK(eviction.reason == "half-written");
    bytes += eviction.bytes;
  }
  CHECK(bytes == std::string("program weights"
                             "weights")
                     .size());
}

TEST_CASE("cache: a damaged entry is recreated in a run that records its sources") {
  TempFolder temp;
  InputRegistry sources;
  FolderCache cache(temp.path / "c");
  Maker maker;
  fs::path path = Get(cache, KeyOf("a"), maker).path;
  InputRegistry::AddFolder(path);
  Spoil(path / "model.mil", "other");
  CHECK_FALSE(Get(cache, KeyOf("a"), maker).hit);
}

TEST_CASE("cache: Exists for absent, empty and foreign folders") {
  TempFolder temp;
  Write(temp.path / "file", "");
  CHECK(test::Refusal([&] { FolderCache cache(temp.path / "file"); }).find("MLC_CACHE_DIR") !=
        std::string::npos);
}

TEST_CASE("cache: other folders are rejected, and foreign files in a cache are kept") {
  TempFolder temp;
  const fs::path folder = temp.path / "c", index = folder / "index" / "notes",
                 work = folder / "work" / "thesis";
  fs::create_directories(work);
  CHECK(test::RefusalId([&] { FolderCache cache(folder); }) == "file-exists");
  CHECK(test::RefusalId([&] { FolderCache::Exists(folder); }) == "file-exists");
  CHECK(fs::exists(work));
  CHECK(FilesIn(folder) == 1);
  fs::remove_all(folder);
  CHECK_FALSE(FolderCache::Exists(folder));
  fs::create_directory(folder);
  CHECK_FALSE(FolderCache::Exists(folder));
  { FolderCache cache(folder); }
  CHECK(FolderCache::Exists(folder));
  fs::create_directories(work);
  Write(index, "");
  fs::create_directories(folder / "work" / "1-1");
  FolderCache cache(folder);
  cache.Clear();
  CHECK(fs::exists(work));
  CHECK(fs::exists(index));
  CHECK_FALSE(fs::exists(folder / "work" / "1-1"));
}

TEST_CASE("cache: a hit succeeds even if digests and counters cannot be written") {
  TempFolder temp;
  FolderCache cache(temp.path / "c", FolderCache::kDefaultLimit,
                    [] { return std::chrono::system_clock::now() + 1h; });
  Maker maker;
  Get(cache, KeyOf("a"), maker);
  for (const char* name : {"index", "stats", "log"}) {
    fs::remove_all(cache.folder() / name);
    if (std::string(name) == "index")
      Write(cache.folder() / name, "");
    else
      fs::create_directory(cache.folder() / name);
  }
  CHECK(Get(cache, KeyOf("a"), maker).hit);
  CHECK(maker.made == 1);
  CHECK(cache.Clear().size() == 1);
}

TEST_CASE("build id matches the one written by the linker") {
  CHECK(BuildId().size() >= 16);
  CHECK(BuildId() == BuildId());
}

}  // namespace
}  // namespace mlc::cache
