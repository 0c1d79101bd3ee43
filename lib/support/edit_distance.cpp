#include "lib/support/edit_distance.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mlc {
namespace {

// Characters that users take for each other are equal.
char Plain(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '_' ? '-' : c;
}

std::string Plain(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) c = Plain(c);
  return plain;
}

// The Damerau-Levenshtein distance between a and b, in which no part changes twice (optimal string
// alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearNames(const std::set<std::string>& names, const std::string& wanted) {
  constexpr size_t kShown = 8, kLongest = 256;
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : names)
    if (!name.empty())
      ranked.emplace_back(
          EditDistance(Plain(name.substr(0, kLongest)), Plain(wanted.substr(0, kLongest))), name);
  std::ranges::sort(ranked);
  std::vector<std::string> nearest;
  for (size_t i = 0; i < ranked.size() && i < kShown; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

std::string MeantName(const std::set<std::string>& names, const std::string& wanted) {
  constexpr size_t kShortestPrefix = 3;
  const std::vector<std::string> nearest = NearNames(names, wanted);
  const std::string plain = Plain(wanted);
  if (!nearest.empty() && 3 * EditDistance(Plain(nearest[0]), plain) <= nearest[0].size())
    return nearest[0];
  std::string longer;
  for (const std::string& name : names) {
    if (plain.size() < kShortestPrefix || !Plain(name).starts_with(plain)) continue;
    if (!longer.empty()) return "";
    longer = name;
  }
  return longer;
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 20; ++i)
    text += (i ? ", " : "") + ("\"" + names[i] + "\"");
  return names.size() > 20 ? text + ", ..." : text;
}

}  // namespace mlc
