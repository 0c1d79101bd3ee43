#include "lib/support/percent_encoding.h"

#include "test/catch.h"

namespace mlc {
namespace {

// `count` times "a", followed by `rest`.
std::string After(size_t count, const std::string& rest) {
  std::string text(count, 'a');
  text += rest;
  return text;
}

TEST_CASE("percent: long names give truncated, distinct file names") {
  CHECK(FileStem("block/1") == "block%2F1");
  CHECK(FileStem(std::string(200, 'a')) == std::string(200, 'a'));
  std::string cut = FileStem(std::string(201, 'a'));
  CHECK(cut.size() == 160 + 2 + 32);
  CHECK(cut.starts_with(After(160, "%~")));
  CHECK(cut != FileStem(std::string(202, 'a')));
  // Truncation does not split %XX.
  for (size_t first : {0, 1, 2})
    CHECK(FileStem(After(first, std::string(100, '/'))).substr(157).find("%~") <= 3);
  CHECK(FileStem(After(158, std::string(50, '/'))).starts_with(After(158, "%~")));
  CHECK(FileStem(After(157, std::string(50, '/'))).starts_with(After(157, "%2F%~")));
}

TEST_CASE("percent: encoding by RFC 3986") {
  CHECK(PercentEncode("Az09-._~") == "Az09-._~");
  CHECK(PercentEncode("block/1:0 é%") == "block%2F1%3A0%20%C3%A9%25");
  CHECK(PercentEncode("") == "");
}

}  // namespace
}  // namespace mlc
