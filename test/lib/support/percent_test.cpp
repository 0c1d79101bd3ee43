#include "lib/support/percent.h"

#include "test/catch.h"

namespace mlc {
namespace {

TEST_CASE("percent: as RFC 3986 has it") {
  CHECK(PercentEncode("Az09-._~") == "Az09-._~");
  CHECK(PercentEncode("block/1:0 é%") == "block%2F1%3A0%20%C3%A9%25");
  CHECK(PercentEncode("") == "");
  CHECK(PercentDecode("block%2F1%3a0") == "block/1:0");
  for (const char* bad : {"%", "%2", "a%zz", "%-1", "%+1"}) CHECK(!PercentDecode(bad));
}

TEST_CASE("percent: every byte comes back") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  CHECK(PercentDecode(PercentEncode(all)) == all);
}

}  // namespace
}  // namespace mlc
