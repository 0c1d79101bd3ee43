#include "lib/support/edit_distance.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mlc {
namespace {

// The Levenshtein distance between a and b.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
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
      ranked.emplace_back(EditDistance(name.substr(0, kLongest), wanted.substr(0, kLongest)), name);
  std::ranges::sort(ranked);
  std::vector<std::string> nearest;
  for (size_t i = 0; i < ranked.size() && i < kShown; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

std::string MeantName(const std::set<std::string>& names, const std::string& wanted) {
  const std::vector<std::string> nearest = NearNames(names, wanted);
  const bool near = !nearest.empty() && 3 * EditDistance(nearest[0], wanted) <= nearest[0].size();
  return near ? nearest[0] : "";
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 20; ++i)
    text += (i ? ", " : "") + ("\"" + names[i] + "\"");
  return names.size() > 20 ? text + ", ..." : text;
}

}  // namespace mlc
