#include "lib/support/utf8.h"

#include <algorithm>
#include <cstdint>

#include "lib/support/error.h"

namespace mlc {

size_t FirstBadUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    unsigned char first = byte(i);
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || i + length > text.size()) return i;
    uint32_t code = length == 1 ? first : first & (0xff >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return i;
      code = code << 6 | (byte(i + k) & 0x3f);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (length == 4 && (code < 0x10000 || code > 0x10ffff)))
      return i;
    i += length;
  }
  return std::string_view::npos;
}

void RequireUtf8(std::string_view text, std::string_view id, const std::string& what) {
  size_t bad = FirstBadUtf8(text);
  if (bad == std::string_view::npos) return;
  std::string_view before = text.substr(0, bad);
  auto line = std::ranges::count(before, '\n') + 1;
  size_t start = before.rfind('\n') + 1;
  constexpr size_t kShown = 40;
  std::string_view shown = before.substr(start);
  if (shown.size() > kShown) {
    shown.remove_prefix(shown.size() - kShown);
    while (!shown.empty() && FirstBadUtf8(shown) != std::string_view::npos) shown.remove_prefix(1);
  }
  throw Error(id, "{} is not UTF-8: line {}, byte {} is 0x{:02x}, after \"{}\"", what, line,
              bad - start + 1, static_cast<unsigned char>(text[bad]), shown)
      .Help("convert it, e.g. iconv -f latin1 -t utf-8");
}

std::string_view WithoutBom(std::string_view text) {
  constexpr std::string_view kBom = "\xef\xbb\xbf";
  return text.starts_with(kBom) ? text.substr(kBom.size()) : text;
}

}  // namespace mlc
