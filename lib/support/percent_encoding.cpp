#include "lib/support/percent_encoding.h"

#include "lib/support/hash.h"

namespace mlc {

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '-' || c == '.' || c == '_' || c == '~';
    if (kept) {
      out += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::string FileStem(std::string_view name) {
  constexpr size_t kLongest = 200, kKept = 160;
  std::string stem = PercentEncode(name);
  if (stem.size() <= kLongest) return stem;
  size_t kept = kKept;
  for (size_t back : {1, 2})
    if (stem[kKept - back] == '%') kept = kKept - back;
  Xxh3 hash;
  hash.Update(name);
  return stem.substr(0, kept) + "%~" + hash.Hex();
}

}  // namespace mlc
