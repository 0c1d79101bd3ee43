// lib/support/near_names.h - what a name that is not known was perhaps meant to be.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace mlc {

// The names most like `wanted`, at most eight, the nearest first.
std::vector<std::string> NearNames(const std::set<std::string>& names, const std::string& wanted);
// The nearest of the names, if at most a third of its characters have to change; else "".
std::string MeantName(const std::set<std::string>& names, const std::string& wanted);
// The names in quotes and between commas; of more than twenty the first.
std::string Quoted(const std::vector<std::string>& names);

}  // namespace mlc
