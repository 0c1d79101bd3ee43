// lib/text/unicode.h - characters of UTF-8, and what Unicode says of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlc {

// Bytes of the character that begins with `lead`, as the byte claims; 1 for what begins none.
constexpr size_t CharacterBytes(char lead) {
  unsigned char byte = static_cast<unsigned char>(lead);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// The text with each byte that is no part of a character replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

// The character at `at`, which moves behind it. `text` is UTF-8.
char32_t NextCharacter(std::string_view text, size_t& at);
void AppendCharacter(std::string& text, char32_t character);

bool IsSpace(char32_t character);    // Unicode's White_Space
bool IsControl(char32_t character);  // Cc, Cf, Co, Cs
bool IsMark(char32_t character);     // Mn, Mc, Me

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// `text` is UTF-8; so is the result.
std::string Normalized(std::string_view text, NormalForm form);
std::string Lowercase(std::string_view text);
// Without the marks that do not take space (Mn).
std::string WithoutAccents(std::string_view text);
// Of each character the first of its decomposition, and no marks (Mn, Mc, Me): what llama.cpp makes
// of text for BERT's vocabularies. Of a Hangul syllable only the leading consonant is left.
std::string BaseCharacters(std::string_view text);

}  // namespace mlc
