// lib/text/unicode.h - UTF-8 characters and their Unicode properties.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mlc::text {

// Returns the length of a character according to its first byte; 1 for an invalid first byte.
constexpr size_t CharacterBytes(char lead) {
  unsigned char byte = static_cast<unsigned char>(lead);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Replaces each byte that is not part of a valid character by U+FFFD.
std::string ValidUtf8(std::string_view text);

// Returns the character at `at` and advances `at`. `text` must be UTF-8.
char32_t NextCharacter(std::string_view text, size_t& at);
void AppendCharacter(std::string& text, char32_t character);

bool IsSpace(char32_t character);     // White_Space of Unicode
bool IsControl(char32_t character);   // Cc, Cf, Co, Cs
bool IsMark(char32_t character);      // Mn, Mc, Me
bool IsLetter(char32_t character);    // Lu, Ll, Lt, Lm, Lo
bool IsUpper(char32_t character);     // Lu
bool IsLower(char32_t character);     // Ll
bool IsTitle(char32_t character);     // Lt
bool IsDigit(char32_t character);     // Nd
bool IsNumber(char32_t character);    // Nd, Nl, No
bool IsAssigned(char32_t character);  // not Cn

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// Both `text` and the result are UTF-8.
std::string Normalized(std::string_view text, NormalForm form);
std::string Lowercase(std::string_view text);
std::string Uppercase(std::string_view text);
// Removes nonspacing marks (Mn).
std::string WithoutAccents(std::string_view text);
// Keeps the first character of each decomposition and removes marks (Mn, Mc, Me), as llama.cpp does
// for vocabularies of BERT. For a Hangul syllable, only the leading consonant remains.
std::string BaseCharacters(std::string_view text);

}  // namespace mlc::text
