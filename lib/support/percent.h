// lib/support/percent.h - percent-encoding, which makes file names of tensor names.
#pragma once

#include <string>
#include <string_view>

namespace mlc {

// Keeps what RFC 3986 calls unreserved (letters, digits, "-._~"); every other byte becomes %XX in
// upper case.
std::string PercentEncode(std::string_view text);
// The file name, without an ending, of a tensor of any name: percent-encoded; of more than 200
// bytes the first 160 of those or fewer, whole characters, then "%~" and the XXH3-128 of the name.
// File systems take 255 bytes, and what is written beside and renamed needs some of them.
std::string FileStem(std::string_view name);

}  // namespace mlc
