// lib/text/charsmap.h - SentencePiece's precompiled normalisation: what the longest prefix of a text
// that its table knows becomes.
//
// The format is SentencePiece's (src/normalizer.cc, src/builder.cc) over Darts-clone's double array:
// four bytes that say how large the array is, the array (32-bit units, little-endian), and the
// replacements, each with a zero behind it.
#pragma once

#include <string>
#include <string_view>

namespace mlc {

// Error "bad-file" unless `charsmap` is such a table.
void RequireCharsmap(std::string_view charsmap);
// The text normalised, or what of it has more than `most` bytes. What is no UTF-8 becomes U+FFFD.
std::string ApplyCharsmap(std::string_view charsmap, std::string_view text, size_t most);

}  // namespace mlc
