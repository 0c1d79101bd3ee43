#include "lib/support/hash.h"

#include <unistd.h>

#include <fstream>

#include "test/catch.h"

namespace mlc {
namespace {

std::string Sha(const std::string& text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Hex();
}

TEST_CASE("hash: SHA-256 of the examples of FIPS 180-4 and of lengths around a block") {
  CHECK(Sha("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(Sha(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Computed by coreutils' sha256sum.
  CHECK(Sha(std::string(55, 'a')) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(Sha(std::string(56, 'a')) ==
        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(Sha(std::string(64, 'a')) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("hash: SHA-1 of the examples of FIPS 180-4") {
  auto sha1 = [](std::string_view text) {
    Sha1 hash;
    hash.Update(text);
    return hash.Hex();
  };
  CHECK(sha1("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  CHECK(sha1(std::string(1000000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("hash: Hex may be called between updates") {
  Sha256 hash;
  hash.Update("ab");
  CHECK(hash.Hex() == Sha("ab"));
  hash.Update("c");
  CHECK(hash.Hex() == Sha("abc"));
}

TEST_CASE("hash: independent of the chunk size") {
  std::string text(10000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  for (size_t piece : {1, 7, 63, 64, 65, 1000}) {
    Sha256 sha;
    Xxh3 xxh;
    for (size_t i = 0; i < text.size(); i += piece) {
      sha.Update(std::string_view(text).substr(i, piece));
      xxh.Update(std::string_view(text).substr(i, piece));
    }
    Xxh3 whole;
    whole.Update(text);
    CHECK(sha.Hex() == Sha(text));
    CHECK(xxh.Hex() == whole.Hex());
  }
}

TEST_CASE("hash: XXH3-128 has the format of xxhsum") {
  Xxh3 hash;
  CHECK(hash.Hex() == "99aa06d3014798d86001c324468d497f");  // of empty input
  hash.Update("abc");
  CHECK(hash.Hex() == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("hash: files") {
  auto path = std::filesystem::temp_directory_path() / ("hash_test_" + std::to_string(getpid()));
  std::ofstream(path) << "abc";
  CHECK(Sha256OfFile(path) == Sha("abc"));
  CHECK(Sha1OfFile(path) == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(Xxh3OfFile(path) == "06b05ab6733a618578af5f94892f3950");
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(Xxh3OfFile(path), ContainsSubstring("file-io"));
}

}  // namespace
}  // namespace mlc
