// lib/text/charsmap.h - SentencePiece's precompiled normalization, which replaces the longest
// matching prefix of the remaining text.
//
// The format is that of SentencePiece (src/normalizer.cc, src/builder.cc) with a double array of
// Darts-clone: the size of the array (four bytes), the array (32-bit units, little-endian), and the
// null-terminated replacements.
#pragma once

#include <string>
#include <string_view>

namespace mlc::text {

// Error "bad-file" unless `charsmap` is a valid table.
void RequireCharsmap(std::string_view charsmap);
// Returns the normalized text, or a prefix of it as soon as it exceeds `most` bytes. Invalid UTF-8
// is replaced by U+FFFD.
std::string ApplyCharsmap(std::string_view charsmap, std::string_view text, size_t most);

}  // namespace mlc::text
