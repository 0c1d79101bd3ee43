// lib/support/edit_distance.h - suggestions for an unknown name.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// The names most similar to `wanted`, at most eight, nearest first. Similarity is the number of
// characters that are changed, added, left out or exchanged with their neighbour; upper and lower
// case count as equal, and so do '-' and '_'.
std::vector<std::string> NearNames(const std::set<std::string>& names, const std::string& wanted);
// The nearest of the names, if at most a third of its characters have to change, or the only one
// that begins with `wanted` (three characters or more); else "".
std::string MeantName(const std::set<std::string>& names, const std::string& wanted);
// The end of a message about the unknown name `wanted`: "; did you mean \"batch\"?", or "" if none
// of the names (any range of strings) is meant.
template <class Names>
std::string DidYouMean(const Names& names, std::string_view wanted) {
  std::set<std::string> known;
  for (const auto& name : names) known.emplace(name);
  const std::string meant = MeantName(known, std::string(wanted));
  return meant.empty() ? "" : "; did you mean \"" + meant + "\"?";
}
// The names, quoted and separated by commas; only the first twenty.
std::string Quoted(const std::vector<std::string>& names);

}  // namespace mlc
