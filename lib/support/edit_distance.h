// lib/support/edit_distance.h - suggestions for an unknown name.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace mlc {

// The names most similar to `wanted`, at most eight, nearest first.
std::vector<std::string> NearNames(const std::set<std::string>& names, const std::string& wanted);
// The nearest of the names, if at most a third of its characters have to change; else "".
std::string MeantName(const std::set<std::string>& names, const std::string& wanted);
// The names, quoted and separated by commas; only the first twenty.
std::string Quoted(const std::vector<std::string>& names);

}  // namespace mlc
