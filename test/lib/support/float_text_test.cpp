#include "lib/support/float_text.h"

#include <cmath>
#include <cstring>
#include <string>

#include "test/catch.h"

namespace mlc {
namespace {

// Compares both parsers on a text: value, characters consumed, and error code.
template <class T>
void Same(const std::string& text, std::chars_format format) {
  INFO(text << (format == std::chars_format::hex ? " (hex)" : ""));
  T expected = 5, found = 5;
  const char *begin = text.data(), *end = begin + text.size();
  const std::from_chars_result theirs = FloatFromChars(begin, end, expected, format);
  const std::from_chars_result ours = FloatFromStrtod(begin, end, found, format);
  CHECK(ours.ec == theirs.ec);
  if (theirs.ec != std::errc::result_out_of_range) CHECK(ours.ptr - begin == theirs.ptr - begin);
  // Libraries differ in the sign of a NaN parsed from hex.
  if (!std::isnan(expected) || !std::isnan(found))
    CHECK(std::memcmp(&found, &expected, sizeof found) == 0);
}

TEST_CASE("float text: the strtod fallback agrees with std::from_chars") {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "-1.5",
                           "1e3",
                           "1.5e-7x",
                           ".5",
                           "5.",
                           "-.5e1",
                           "",
                           "-",
                           "+1",
                           " 1",
                           "--1",
                           "e5",
                           "1e",
                           "1e+",
                           "inf",
                           "-inf",
                           "nan",
                           "-nan",
                           "infinity",
                           "nonsense",
                           "0x10",
                           "-0X1p3",
                           "1,5",
                           "1e999",
                           "-1e999",
                           "1e-999",
                           "4.9e-324",
                           "1e-45",
                           "3.4028235e38",
                           "1.8p3",
                           "ff.8p-2",
                           "p1",
                           "0.1",
                           "123456789012345678901234567890",
                           "1.17549435e-38",
                           "7fffp+12",
                           "a",
                           "f"})
    for (std::chars_format format : {std::chars_format::general, std::chars_format::hex}) {
      Same<float>(text, format);
      Same<double>(text, format);
    }
}

}  // namespace
}  // namespace mlc
