// lib/text/python_text.h - operations of Python's str on UTF-8 text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlc::text {

// The bytes of white space at the beginning; white space is that of str.isspace.
size_t LeadingSpace(std::string_view text);
std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);
// Strips any of `characters` instead.
std::string_view StripLeft(std::string_view text, std::string_view characters);
std::string_view StripRight(std::string_view text, std::string_view characters);

// str.split and str.rsplit, at most `most` times if that is not negative: at white space, or at a
// separator that is not empty.
std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t most, bool from_right);
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t most, bool from_right);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);
// Returns the number of occurrences that do not overlap. An empty `part` occurs between characters.
size_t CountOf(std::string_view text, std::string_view part);
// At most `most` times if that is not negative.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t most);

std::string Capitalized(std::string_view text);
std::string Titlecased(std::string_view text);
std::string CaseSwapped(std::string_view text);

// str.isalnum, isalpha, isascii, isdigit, islower, isnumeric, isspace, istitle, isupper by name.
bool IsAll(std::string_view predicate, std::string_view text);

}  // namespace mlc::text
