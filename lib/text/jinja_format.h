// lib/text/jinja_format.h - Python's formatting of values: "%d" % x, "{:.2f}".format(x).
#pragma once

#include "lib/text/jinja_value.h"

namespace mlc::text::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > ^ =; 0: right for numbers, left otherwise
  char sign = 0;   // +, space
  bool alternate = false, grouped = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};
// Returns the value in the format; fails for a type that does not fit.
std::string Formatted(Runtime& runtime, const Value& value, const FormatSpec& spec);
// text.format(...).
std::string FormatBraces(Runtime& runtime, std::string_view format, const Arguments& arguments);
// Fills a text up to a number of characters.
std::string Padded(Runtime& runtime, std::string_view text, std::string_view fill, char align,
                   int64_t width);

}  // namespace mlc::text::jinja
