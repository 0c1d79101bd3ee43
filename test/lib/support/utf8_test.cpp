#include "lib/support/utf8.h"

#include "lib/support/error.h"
#include "test/catch.h"

namespace mlc {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST_CASE("utf8: well-formed sequences at the limits of Unicode table 3-7") {
  for (std::string_view good :
       {"", "abc", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xec\xbf\xbf", "\xed\x80\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf",
        "\xf4\x80\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(FirstBadUtf8(good) == kNone);
  CHECK(FirstBadUtf8(std::string_view("a\0b", 3)) == kNone);
}

TEST_CASE("utf8: ill-formed sequences") {
  for (std::string_view bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xe0\x9f\xbf", "\xe0\xa0",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xfe"})
    CHECK(FirstBadUtf8("ab" + std::string(bad)) == 2);
}

TEST_CASE("utf8: an error names line and byte") {
  CHECK_NOTHROW(RequireUtf8("h\xc3\xb8ne", "bad-file", "a label"));
  CHECK_THROWS_WITH(RequireUtf8("cat\ndog\nh\xf8ne\n", "bad-file", "labels"),
                    ContainsSubstring("error[bad-file]: labels is not UTF-8: line 3, byte 2 is "
                                      "0xf8, after \"h\""));
  // The excerpt of the line is valid UTF-8 wherever it is cut.
  std::string line;
  for (int i = 0; i < 50; ++i) line += "\xe2\x82\xac";
  for (size_t more : {0, 1, 2}) {
    try {
      RequireUtf8(line + std::string(more, 'x') + "\xff", "bad-file", "text");
      CHECK(false);
    } catch (const Error& error) {
      CHECK(FirstBadUtf8(error.text()) == kNone);
    }
  }
}

TEST_CASE("utf8: a byte order mark is stripped") {
  CHECK(WithoutBom("\xef\xbb\xbf"
                   "cat") == "cat");
  CHECK(WithoutBom("cat") == "cat");
  CHECK(WithoutBom("\xef\xbb") == "\xef\xbb");
}

}  // namespace
}  // namespace mlc
