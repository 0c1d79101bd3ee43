#include "lib/support/install.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "lib/support/error.h"
#include "test/catch.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("install_test_" + std::to_string(getpid()));
  TempFolder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~TempFolder() { fs::remove_all(path); }
  // What lies in the folder, hidden names too.
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

TEST_CASE("install: a folder, new and over an old one") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  for (const char* text : {"one", "two"}) {
    Staging staging(target, false);
    MakePackage(staging.path(), text);
    if (*text == 't') Write(staging.path() / "extra", "");
    staging.Commit();
    CHECK(Read(target / "Data" / "model") == text);
  }
  CHECK(folder.count() == 1);
  CHECK(fs::exists(target / "extra"));
}

TEST_CASE("install: a file, also over a folder and back") {
  TempFolder folder;
  fs::path target = folder.path / "m";
  for (const char* kind : {"file", "file", "folder", "file"}) {
    Staging staging(target, false);
    if (std::string(kind) == "file")
      Write(staging.path(), "text");
    else
      MakePackage(staging.path(), "text");
    staging.Commit();
    CHECK(fs::is_directory(target) == (std::string(kind) == "folder"));
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("install: nothing happens without Commit") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "old");
  {
    Staging staging(target, true);
    MakePackage(staging.path(), "new");
    CHECK(folder.count() == 2);
  }
  CHECK(folder.count() == 1);
  CHECK(Read(target / "Data" / "model") == "old");
  Staging empty(folder.path / "x", true);
  CHECK_THROWS_WITH(empty.Commit(), ContainsSubstring("file-io"));
}

TEST_CASE("install: a symbolic link stands for what it points to") {
  TempFolder folder;
  fs::create_directory(folder.path / "real");
  Write(folder.path / "real" / "m", "old");
  fs::create_symlink(folder.path / "real" / "m", folder.path / "link");
  Staging staging(folder.path / "link", false);
  Write(staging.path(), "new");
  staging.Commit();
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(Read(folder.path / "real" / "m") == "new");
}

TEST_CASE("install: impossible targets") {
  TempFolder folder;
  CHECK_THROWS_WITH(Staging(folder.path / "no" / "m", false), ContainsSubstring("does not exist"));
  CHECK_THROWS_WITH(Staging("/", false), ContainsSubstring("file-io"));
  CHECK_THROWS_WITH(Staging(folder.path / "..", false), ContainsSubstring("cannot be an output"));
  Staging slash((folder.path / "m.mlpackage/").string(), false);
  CHECK(slash.path().filename() == "m.mlpackage");
  Staging long_name(folder.path / std::string(250, 'n'), false);
  Write(long_name.path(), "x");
  CHECK_NOTHROW(long_name.Commit());
}

TEST_CASE("install: what a killed process left is removed, a living one's is kept") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "old");
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    Staging staging(target, false);
    MakePackage(staging.path(), "child");
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  CHECK(folder.count() == 2);
  { Staging other(target, false); }
  CHECK(folder.count() == 2);  // the child lives
  { Staging neighbour(folder.path / "m", false); }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(folder.count() == 2);
  { Staging neighbour(folder.path / "m", false); }
  CHECK(folder.count() == 2);  // of another target
  { Staging next(target, false); }
  CHECK(folder.count() == 1);
  CHECK(Read(target / "Data" / "model") == "old");
}

TEST_CASE("install: a process killed at any time leaves the old or the new package, whole") {
  TempFolder folder;
  fs::path target = folder.path / "m.mlpackage";
  MakePackage(target, "0");
  Write(target / "copy", "0");
  for (int round = 0; round < 12; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int i = 0; true; ++i) {
        Staging staging(target, false);
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
  { Staging last(target, false); }
  CHECK(folder.count() == 1);
}

}  // namespace
}  // namespace mlc
