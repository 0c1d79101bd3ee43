#include "lib/text/charsmap.h"

#include <cstdint>

#include "lib/support/error.h"
#include "lib/support/utf8.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

uint32_t Word(std::string_view bytes, size_t at) {
  auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[at + i])}; };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

struct Charsmap {
  std::string_view units;
  std::string_view replacements;

  explicit Charsmap(std::string_view bytes) {
    uint32_t size = Word(bytes, 0);
    units = bytes.substr(4, size);
    replacements = bytes.substr(4 + size);
  }

  // Reading beyond the array gives a unit that no label matches.
  uint32_t Unit(size_t index) const {
    return index < units.size() / 4 ? Word(units, index * 4) : uint32_t{1} << 31;
  }
  static uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

  // Returns the length in bytes of the longest prefix of `text` in the table, and its replacement.
  size_t Longest(std::string_view text, std::string_view& replacement) const {
    size_t longest = 0;
    size_t node = Offset(Unit(0));
    for (size_t i = 0; i < text.size(); ++i) {
      unsigned char label = static_cast<unsigned char>(text[i]);
      if (label == 0) break;
      node ^= label;
      uint32_t unit = Unit(node);
      if ((unit & ((1u << 31) | 0xff)) != label) break;
      node ^= Offset(unit);
      if (!(unit >> 8 & 1)) continue;
      size_t at = Unit(node) & 0x7fffffff;
      if (at >= replacements.size()) continue;
      longest = i + 1;
      replacement = replacements.substr(at, replacements.find('\0', at) - at);
    }
    return longest;
  }
};

}  // namespace

void RequireCharsmap(std::string_view charsmap) {
  if (charsmap.empty()) return;
  if (charsmap.size() < 4 || Word(charsmap, 0) % 4 != 0 ||
      Word(charsmap, 0) >= charsmap.size() - 4 || charsmap.back() != '\0')
    throw Error("bad-file", "the precompiled normalizer of the tokenizer ({} bytes) is invalid",
                charsmap.size())
        .Expected("a size, an array of that size, and null-terminated strings");
}

std::string ApplyCharsmap(std::string_view charsmap, std::string_view text, size_t most) {
  std::string valid;
  if (FirstBadUtf8(text) != std::string_view::npos) text = valid = ValidUtf8(text);
  if (charsmap.empty()) return std::string(text);
  Charsmap map(charsmap);
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size() && result.size() <= most;) {
    std::string_view replacement;
    size_t bytes = map.Longest(text.substr(at), replacement);
    if (bytes == 0) {
      bytes = CharacterBytes(text[at]);
      replacement = text.substr(at, bytes);
    }
    result.append(replacement);
    at += bytes;
  }
  return result;
}

}  // namespace mlc::text
