// lib/support/float_text.h - locale-independent parsing of floating-point numbers.
//
// Equivalent to std::from_chars, which Apple's libc++ lacks for floats before macOS 26 (velox,
// issue 15139).
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace mlc {

// T is float or double; `format` is general or hex (without 0x). The result, and `value` on error,
// are those of std::from_chars.
template <class T>
std::from_chars_result FloatFromChars(const char* begin, const char* end, T& value,
                                      std::chars_format format = std::chars_format::general);

// Returns the finite number that the entire text represents, or nothing if it is not one.
std::optional<double> ParseNumber(std::string_view text);

// The fallback by strtod for libraries without std::from_chars; public for its test.
template <class T>
std::from_chars_result FloatFromStrtod(const char* begin, const char* end, T& value,
                                       std::chars_format format);

}  // namespace mlc
