// lib/report/markup.h - text in HTML, SVG and XML.
#pragma once

#include <string>
#include <string_view>

namespace mlc::report {

// For text and for values of attributes in double quotes: & < > " and line breaks are escaped.
// Most control characters, and bytes that are not UTF-8, become '?', because XML 1.0 cannot express
// them.
std::string MarkupText(std::string_view text);
// At most `most` characters: the middle of a longer text becomes an ellipsis.
std::string Shortened(std::string_view text, size_t most);

}  // namespace mlc::report
