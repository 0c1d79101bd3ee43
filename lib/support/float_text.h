// lib/support/float_text.h - floating-point numbers from text, in no locale.
//
// As std::from_chars, which Apple's libc++ lacks for them before macOS 26 (velox, issue 15139).
#pragma once

#include <charconv>

namespace mlc {

// `T`: float or double; `format`: general or hex (without 0x). What std::from_chars returns, and `value` as it leaves it.
template <class T>
std::from_chars_result FloatFromChars(const char* begin, const char* end, T& value,
                                      std::chars_format format = std::chars_format::general);

// The same by way of strtod, what there is where the library has no other; for its test.
template <class T>
std::from_chars_result FloatFromStrtod(const char* begin, const char* end, T& value,
                                       std::chars_format format);

}  // namespace mlc
