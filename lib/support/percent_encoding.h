// lib/support/percent_encoding.h - percent-encoding, which turns tensor names into file names.
#pragma once

#include <string>
#include <string_view>

namespace mlc {

// Keeps unreserved characters of RFC 3986 (letters, digits, "-._~"); encodes every other byte as
// %XX in upper case.
std::string PercentEncode(std::string_view text);
// The file name of a tensor, without extension: the percent-encoded name. If that exceeds 200
// bytes, its first 160 bytes at most, cut between characters, followed by "%~" and the XXH3-128 of
// the name. File systems allow 255 bytes, of which temporary names need some.
std::string FileStem(std::string_view name);

}  // namespace mlc
