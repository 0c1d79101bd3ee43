#include "lib/report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/support/utf8.h"

namespace mlc::report {

std::string MarkupText(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t bad = std::min(FirstBadUtf8(text), text.size());
    for (const char c : text.substr(0, bad)) {
      if (c == '&')
        escaped += "&amp;";
      else if (c == '<')
        escaped += "&lt;";
      else if (c == '>')
        escaped += "&gt;";
      else if (c == '"')
        escaped += "&quot;";
      else if (c == '\n' || c == '\t' || c == '\r')
        escaped += fmt::format("&#{};", static_cast<int>(c));
      else
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    text.remove_prefix(bad);
    if (!text.empty()) {
      escaped += '?';
      text.remove_prefix(1);
    }
  }
  return escaped;
}

std::string Shortened(std::string_view text, size_t most) {
  std::vector<size_t> starts;  // of the characters
  for (size_t i = 0; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80) starts.push_back(i);
  if (starts.size() <= most) return std::string(text);
  const size_t kept = most - 1, before = kept / 2;
  return fmt::format("{}\xE2\x80\xA6{}", text.substr(0, starts[before]),
                     text.substr(starts[starts.size() - (kept - before)]));
}

}  // namespace mlc::report
