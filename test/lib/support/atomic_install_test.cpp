#include "lib/support/atomic_install.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "lib/support/error.h"
#include "lib/support/input_registry.h"
#include "lib/support/regular_file.h"
#include "lib/support/scratch_folders.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

struct TempFolder {
  fs::path path;
  explicit TempFolder(const fs::path& parent = fs::temp_directory_path())
      : path(parent / ("install_test_" + std::to_string(getpid()))) {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~TempFolder() { fs::remove_all(path); }
  // The number of entries in the folder, including hidden ones.
  int count() const { return static_cast<int>(std::distance(fs::directory_iterator(path), {})); }
};

void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
std::string Read(const fs::path& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  return text;
}
void MakePackage(const fs::path& path, const std::string& text) {
  fs::create_directories(path / "Data");
  Write(path / "Data" / "model", text);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("install: nothing is left if memory runs out") {
  TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    {
      Staging staging(folder.path / "m.mlpackage", Staging::kFolder);
      MakePackage(staging.path(), "one");
      size_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;  // of address space
      const rlimit no_more = {pages * getpagesize(), RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &no_more);
      void* volatile block = nullptr;  // volatile keeps the compiler from removing the calls
      for (size_t bytes = 1 << 24; bytes >= 16; bytes /= block ? 1 : 2) block = malloc(bytes);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(folder.count() == 0);
}
#endif

TEST_CASE("install: a new folder, and one that replaces another") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  for (const char* text : {"one", "two"}) {
    Staging staging(target, Staging::kFolder);
    MakePackage(staging.path(), text);
    if (*text == 't') Write(staging.path() / "extra", "");
    staging.Commit();
    CHECK(Read(target / "Data" / "model") == text);
  }
  CHECK(folder.count() == 1);
  CHECK(fs::exists(target / "extra"));
}

TEST_CASE("install: a file or folder replaces a file; a file does not replace a folder") {
  TempFolder folder;
  fs::path target = folder.path / "m";
  for (const char* text : {"one", "two"}) {
    WriteFile(target, text);
    CHECK(Read(target) == text);
  }
  {
    Staging staging(target, Staging::kFolder);
    MakePackage(staging.path(), "text");
    staging.Commit();
  }
  CHECK_THROWS_WITH(WriteFile(target, "three"),
                    ContainsSubstring("file-exists") && ContainsSubstring("is a folder"));
  CHECK(Read(target / "Data" / "model") == "text");
  CHECK(folder.count() == 1);
}

TEST_CASE("install: devices, pipes and sockets are not replaced") {
  TempFolder folder;
  fs::path pipe = folder.path / "pipe", link = folder.path / "link";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", link);
  for (const fs::path& path : {pipe, link})
    for (Staging::Kind kind : {Staging::kFile, Staging::kFolder})
      CHECK_THROWS_WITH(Staging(path, kind, true), ContainsSubstring("not a regular file"));
  CHECK(folder.count() == 2);
}

TEST_CASE("install: without Commit the target is unchanged") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "old");
  {
    Staging staging(target, Staging::kFolder, true);
    MakePackage(staging.path(), "new");
    CHECK(folder.count() == 2);
  }
  CHECK(folder.count() == 1);
  CHECK(Read(target / "Data" / "model") == "old");
  Staging empty(folder.path / "x", Staging::kFolder, true);
  CHECK_THROWS_WITH(empty.Commit(), ContainsSubstring("file-io"));
}

TEST_CASE("install: the target of a symbolic link is replaced") {
  TempFolder folder;
  fs::create_directory(folder.path / "real");
  Write(folder.path / "real" / "m", "old");
  fs::create_symlink(folder.path / "real" / "m", folder.path / "link");
  Staging staging(folder.path / "link", Staging::kFile);
  Write(staging.path(), "new");
  staging.Commit();
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(Read(folder.path / "real" / "m") == "new");
}

TEST_CASE("install: a dangling symbolic link is followed") {
  TempFolder folder;
  fs::create_directory(folder.path / "real");
  fs::create_symlink("real/m", folder.path / "first");
  fs::create_symlink(folder.path / "first", folder.path / "second");
  WriteFile(folder.path / "second", "new");
  CHECK(fs::is_symlink(folder.path / "second"));
  CHECK(fs::is_symlink(folder.path / "first"));
  CHECK(Read(folder.path / "real" / "m") == "new");
  fs::create_symlink("no/where", folder.path / "nowhere");
  CHECK_THROWS_WITH(WriteFile(folder.path / "nowhere", ""), ContainsSubstring("does not exist"));
  fs::create_symlink("loop", folder.path / "loop");
  CHECK_THROWS_WITH(WriteFile(folder.path / "loop", ""), ContainsSubstring("dangling or cyclic"));
}

TEST_CASE("install: inputs are not overwritten under any path") {
  TempFolder folder;
  fs::path file = folder.path / "read" / "file", package = folder.path / "p.mlpackage";
  fs::create_directory(file.parent_path());
  Write(file, "text");
  MakePackage(package, "model");
  fs::create_hard_link(file, folder.path / "hard");
  fs::create_symlink("read", folder.path / "soft");
  fs::create_symlink(package / "Data", folder.path / "inside");
  auto refused = [](const fs::path& path, Staging::Kind kind) {
    return test::Refusal([&] { Staging(path, kind, true); });
  };
  {
    InputRegistry sources;
    close(OpenRegular(folder.path / "soft" / "file"));
    InputRegistry::AddFolder(package);
    CHECK_THAT(refused(file, Staging::kFile),
               ContainsSubstring("soft/file") && ContainsSubstring("read/file\" cannot be"));
    CHECK_THAT(refused(folder.path / "hard", Staging::kFile), ContainsSubstring("it is"));
    CHECK_THAT(refused(folder.path / "soft", Staging::kFolder),
               ContainsSubstring("contains the input"));
    CHECK_THAT(refused(folder.path / "read/", Staging::kFolder),
               ContainsSubstring("contains the input"));
    CHECK_THAT(refused(folder.path, Staging::kFolder), ContainsSubstring("contains the input"));
    CHECK_THAT(refused(package / "Data" / "model", Staging::kFile),
               ContainsSubstring("it is inside the input"));
    CHECK_THAT(refused(folder.path / "inside" / "new", Staging::kFile),
               ContainsSubstring("it is inside the input"));
    CHECK(refused(folder.path / "read" / "other", Staging::kFile).empty());
    CHECK(refused(folder.path / "p", Staging::kFolder).empty());
    // An input that is not there any more may have given its inode to another file.
    Write(folder.path / "gone", "text");
    close(OpenRegular(folder.path / "gone"));
    CHECK_THAT(refused(folder.path / "gone", Staging::kFile), ContainsSubstring("it is the input"));
    fs::rename(folder.path / "gone", folder.path / "another");
    CHECK(refused(folder.path / "another", Staging::kFile).empty());
    fs::create_directory(folder.path / "gone.mlpackage");
    InputRegistry::AddFolder(folder.path / "gone.mlpackage");
    fs::rename(folder.path / "gone.mlpackage", folder.path / "another.mlpackage");
    CHECK(refused(folder.path / "another.mlpackage" / "new", Staging::kFile).empty());
    {
      InputRegistry::Unnoted look;
      close(OpenRegular(package / "Data" / "model"));
    }
    Write(folder.path / "other", "text");
    close(OpenRegular(folder.path / "other"));
    WriteFile(folder.path / "new", "");
    Write(folder.path / "other", "longer text");
    CHECK_THROWS_WITH(WriteFile(folder.path / "new", ""),
                      ContainsSubstring("modified while it was being read"));
  }
  // Without an InputRegistry, the application decides what may be overwritten.
  CHECK(refused(file, Staging::kFile).empty());
}

TEST_CASE("install: a signal removes uncommitted output and prevents later commits") {
  TempFolder folder;
  pid_t child = fork();
  if (child == 0) {
    Staging staging(folder.path / "m.mlpackage", Staging::kFolder);
    Staging other(folder.path / "other", Staging::kFile);
    MakePackage(staging.path(), "model");
    Write(other.path(), "text");
    std::thread writer([&] {
      for (int i = 0; true; ++i) Write(staging.path() / "Data" / std::to_string(i % 100), "more");
    });
    usleep(20000);
    ScratchFolders::RemoveAll();
    std::thread([&] { other.Commit(); }).detach();  // waits until the end
    usleep(100000);
    _exit(folder.count() == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(folder.count() == 0);
}

TEST_CASE("install: invalid targets are rejected") {
  TempFolder folder;
  CHECK_THROWS_WITH(Staging(folder.path / "no" / "m", Staging::kFile),
                    ContainsSubstring("does not exist"));
  CHECK_THROWS_WITH(Staging("/", Staging::kFolder), ContainsSubstring("file-io"));
  CHECK_THROWS_WITH(Staging(folder.path / "..", Staging::kFolder),
                    ContainsSubstring("not a valid output path"));
  Staging slash((folder.path / "m.mlpackage/").string(), Staging::kFolder);
  CHECK(slash.path().filename() == "m.mlpackage");
  Staging long_name(folder.path / std::string(250, 'n'), Staging::kFile);
  Write(long_name.path(), "x");
  CHECK_NOTHROW(long_name.Commit());
}

TEST_CASE("install: staging folders of dead processes are removed, those of live ones kept") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "old");
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    Staging staging(target, Staging::kFolder);
    MakePackage(staging.path(), "child");
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  CHECK(folder.count() == 2);
  { Staging other(target, Staging::kFolder); }
  CHECK(folder.count() == 2);  // the child is alive
  { Staging neighbour(folder.path / "m", Staging::kFolder); }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(folder.count() == 2);
  { Staging neighbour(folder.path / "m", Staging::kFolder); }
  CHECK(folder.count() == 2);  // of another target
  { Staging next(target, Staging::kFolder); }
  CHECK(folder.count() == 1);
  CHECK(Read(target / "Data" / "model") == "old");
}

TEST_CASE("install: a process killed at any time leaves a complete old or new package") {
  // In memory where possible: disks that discard freed blocks at once take minutes for these files.
  const fs::path memory = "/dev/shm";
  TempFolder folder(access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path());
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "0");
  Write(target / "copy", "0");
  for (int round = 0; round < 12; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int i = 0; true; ++i) {
        Staging staging(target, Staging::kFolder);
        MakePackage(staging.path(), std::to_string(i));
        Write(staging.path() / "copy", std::to_string(i));
        staging.Commit();
      }
    }
    usleep(500 + 1700 * round);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(!Read(target / "copy").empty());
    CHECK(Read(target / "copy") == Read(target / "Data" / "model"));
  }
  { Staging last(target, Staging::kFolder); }
  CHECK(folder.count() == 1);
}

}  // namespace
}  // namespace mlc
