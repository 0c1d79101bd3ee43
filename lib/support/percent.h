// lib/support/percent.h - percent-encoding, which makes file names of tensor names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mlc {

// Keeps what RFC 3986 calls unreserved (letters, digits, "-._~"); every other byte becomes %XX in
// upper case.
std::string PercentEncode(std::string_view text);
// Nothing when a % is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace mlc
