#include "lib/support/mapped_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "lib/support/error.h"
#include "lib/support/regular_file.h"
#include "test/catch.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("mapped_file_test_" + std::to_string(getpid()));
  TempFolder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~TempFolder() { fs::remove_all(path); }
};

TEST_CASE("mapped file: only regular files are opened, and nothing is waited for") {
  TempFolder folder;
  fs::path pipe = folder.path / "pipe", name = folder.path / "socket";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, name.c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  CHECK_THROWS_WITH(MappedFile::Open(pipe), ContainsSubstring("is a pipe"));
  CHECK_THROWS_WITH(MappedFile::Open(name), ContainsSubstring("is a socket"));
  CHECK_THROWS_WITH(MappedFile::Open(folder.path), ContainsSubstring("is a folder"));
  CHECK_THROWS_WITH(MappedFile::Open("/dev/zero"), ContainsSubstring("is a device"));
  CHECK_THROWS_WITH(MappedFile::Open(folder.path / "no"), ContainsSubstring("cannot open"));
  close(listener);
}

TEST_CASE("mapped file: an address leads to its file") {
  TempFolder folder;
  std::ofstream(folder.path / "a") << std::string(10000, 'a');
  std::ofstream(folder.path / "b") << "b";
  std::ofstream(folder.path / "empty");
  auto a = MappedFile::Open(folder.path / "a"), b = MappedFile::Open(folder.path / "b");
  CHECK(MappedFile::Open(folder.path / "empty")->bytes().empty());
  CHECK(MappedAt(a->bytes().data()) == folder.path / "a");
  CHECK(MappedAt(&a->bytes()[9999]) == folder.path / "a");
  CHECK(MappedAt(b->bytes().data()) == folder.path / "b");
  CHECK(MappedAt(&folder).empty());
  const void* gone = a->bytes().data();
  a.reset();
  CHECK(MappedAt(gone).empty());
}

}  // namespace
}  // namespace mlc
