#include "lib/text/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "lib/support/utf8.h"

namespace mlc::text {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

// Returns the text with each character replaced by what `change` appends for it.
template <class Change>
std::string Changed(std::string_view text, Change change) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) change(NextCharacter(text, at), result);
  return result;
}

utf8proc_category_t Category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string result;
  for (;;) {
    size_t bad = FirstBadUtf8(text);
    if (bad == std::string_view::npos) return result.append(text);
    result.append(text.substr(0, bad)).append(kReplacement);
    text.remove_prefix(bad + 1);
  }
}

char32_t NextCharacter(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  size_t bytes = std::min(CharacterBytes(text[at]), text.size() - at);
  char32_t character = bytes == 1   ? byte(0)
                       : bytes == 2 ? byte(0) & 0x1f
                       : bytes == 3 ? byte(0) & 0x0f
                                    : byte(0) & 0x07;
  for (size_t i = 1; i < bytes; ++i) character = character << 6 | (byte(i) & 0x3f);
  at += bytes;
  return character;
}

void AppendCharacter(std::string& text, char32_t character) {
  if (character < 0x80) {
    text.push_back(static_cast<char>(character));
    return;
  }
  utf8proc_uint8_t bytes[4];
  auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

bool IsSpace(char32_t character) {
  if (character < 0x80) return character == ' ' || (character >= '\t' && character <= '\r');
  if (character == 0x85) return true;
  auto category = Category(character);
  return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
}

bool IsControl(char32_t character) {
  auto category = Category(character);
  return category >= UTF8PROC_CATEGORY_CC && category <= UTF8PROC_CATEGORY_CO;
}

bool IsMark(char32_t character) {
  auto category = Category(character);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsLetter(char32_t character) {
  auto category = Category(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool IsUpper(char32_t character) { return Category(character) == UTF8PROC_CATEGORY_LU; }
bool IsLower(char32_t character) { return Category(character) == UTF8PROC_CATEGORY_LL; }
bool IsTitle(char32_t character) { return Category(character) == UTF8PROC_CATEGORY_LT; }
bool IsDigit(char32_t character) { return Category(character) == UTF8PROC_CATEGORY_ND; }
bool IsNumber(char32_t character) {
  auto category = Category(character);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}
bool IsAssigned(char32_t character) { return Category(character) != UTF8PROC_CATEGORY_CN; }

std::string Normalized(std::string_view text, NormalForm form) {
  unsigned options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* bytes = nullptr;
  auto count = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                            static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                            static_cast<utf8proc_option_t>(options));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (count < 0) {
    if (count == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
    return std::string(text);
  }
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

std::string Lowercase(std::string_view text) {
  return Changed(text, [](char32_t character, std::string& result) {
    // The only character whose lower case has two characters (SpecialCasing.txt,
    // language-independent).
    if (character == 0x130) {
      result += "i\u0307";
      return;
    }
    AppendCharacter(
        result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
  });
}

std::string Uppercase(std::string_view text) {
  // The letters of Latin script whose upper case has several characters (SpecialCasing.txt).
  struct Row {
    char32_t letter;
    std::string_view upper;
  };
  static constexpr Row kSeveral[] = {
      {0xdf, "SS"},   {0x149, "\u02bcN"}, {0x1f0, "J\u030c"}, {0xfb00, "FF"}, {0xfb01, "FI"},
      {0xfb02, "FL"}, {0xfb03, "FFI"},    {0xfb04, "FFL"},    {0xfb05, "ST"}, {0xfb06, "ST"}};
  return Changed(text, [](char32_t character, std::string& result) {
    for (const auto& [letter, upper] : kSeveral)
      if (character == letter) {
        result += upper;
        return;
      }
    AppendCharacter(
        result, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character))));
  });
}

std::string WithoutAccents(std::string_view text) {
  return Changed(text, [](char32_t character, std::string& result) {
    if (Category(character) != UTF8PROC_CATEGORY_MN) AppendCharacter(result, character);
  });
}

std::string BaseCharacters(std::string_view text) {
  return Changed(text, [](char32_t character, std::string& result) {
    if (character >= 0x80) {
      // The longest decomposition has four characters; if the buffer is too small, it is filled.
      utf8proc_int32_t parts[8];
      int boundary = 0;
      auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts, 8,
                                           UTF8PROC_DECOMPOSE, &boundary);
      if (count > 0) character = static_cast<char32_t>(parts[0]);
    }
    if (!IsMark(character)) AppendCharacter(result, character);
  });
}

}  // namespace mlc::text
