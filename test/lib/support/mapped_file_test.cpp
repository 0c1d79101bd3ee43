#include "lib/support/mapped_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "lib/support/byte_window.h"
#include "lib/support/error.h"
#include "lib/support/regular_file.h"
#include "test/catch.h"
#include "test/read_in_parts.h"

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

TEST_CASE("mapped file: only regular files are opened, without blocking") {
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

TEST_CASE("mapped file: MappedAt finds the file of an address") {
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

TEST_CASE("mapped file: read in parts if the address space is limited") {
  TempFolder folder;
  fs::path path = folder.path / "a";
  std::string text(300'000, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 251 % 26);
  std::ofstream(path) << text;
  auto whole = MappedFile::Open(path), parts = OpenInParts(path);
  CHECK(AsText(whole->mapped()) == text);
  CHECK(parts->size() == text.size());
  for (const auto& file : {whole, parts}) {
    ByteWindow window(*file);
    CHECK(window.size() == text.size());
    CHECK(AsText(window.Head(10)) == text.substr(0, 10));
    CHECK(window.Head(1'000'000).size() == text.size());
    for (auto [offset, size] : std::initializer_list<std::pair<size_t, size_t>>{{0, 1},
                                                                                {65530, 12},
                                                                                {65530, 100'000},
                                                                                {299'999, 1},
                                                                                {3, 0},
                                                                                {300'000, 0},
                                                                                {7, 65536}}) {
      INFO(offset << " " << size);
      CHECK(AsText(window.At(offset, size)) == text.substr(offset, size));
      std::vector<std::byte> copy(size);
      file->Read(offset, copy);
      CHECK(AsText(copy) == text.substr(offset, size));
      file->Release(offset, size);
    }
    CHECK(window[299'998] == std::byte(text[299'998]));
  }
  // The whole file can be mapped if there is enough address space.
  CHECK(AsText(parts->bytes()) == text);
  CHECK(MappedAt(parts->bytes().data()) == path);
}

TEST_CASE("mapped file: truncated while being read in parts") {
  TempFolder folder;
  fs::path path = folder.path / "a";
  std::ofstream(path) << std::string(100'000, 'a');
  auto file = OpenInParts(path);
  if (file->mapped().data()) return;
  fs::resize_file(path, 70'000);
  std::vector<std::byte> bytes(90'000);
  file->Read(0, std::span(bytes).first(70'000));
  CHECK_THROWS_WITH(file->Read(0, bytes),
                    ContainsSubstring("error[file-io]: the file was truncated") &&
                        ContainsSubstring(path.string()));
  ByteWindow window(*file);
  CHECK(window.At(0, 1).size() == 1);
  CHECK_THROWS_WITH(window.At(80'000, 1), ContainsSubstring("was truncated"));
  CHECK(window.At(0, 1)[0] == std::byte('a'));
}

}  // namespace
}  // namespace mlc
