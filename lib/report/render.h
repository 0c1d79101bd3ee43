// lib/report/render.h - the forms of a report.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lib/report/document.h"

namespace mlc::report {

// A number with its unit, for readers: "9.60 MB", "1.2e-03", "97.5 %".
std::string Text(double number, Quantity unit);
// The text of a cell without its mark; of a series, its last number.
std::string Text(const Cell& cell, Quantity unit);
// "PASS" and so on; empty for none.
std::string_view Name(Mark mark);
// A line of numbers in eight heights: U+2581 to U+2588, and a space for what is not finite. More
// than `most` numbers are averaged.
std::string Sparkline(const std::vector<double>& numbers, size_t most = 60);

// A series on one line: its numbers as a line of heights, and the range of them.
struct SeriesText {
  std::string line, range;  // "0.1 ms to 2 ms"; both are empty for a series without points
};
SeriesText TextOf(const Series& series, const Axis& y);

// For a terminal: columns are aligned, lines are not broken.
std::string TerminalText(const Document& document);
std::string TerminalText(const Table& table);
std::string TerminalText(const Chart& chart);
// GitHub's dialect. Rows that are not shown at first stand in a folded part.
std::string Markdown(const Document& document);
std::string Markdown(const Table& table);
// {title, command, verdict, facts, sections: [{title, blocks: [{paragraph | facts | table | chart |
// graph}]}], checks}. Numbers are in the units of their columns; what is not finite is a string.
std::string Json(const Document& document);
// Test suites by the group of the checks, by the schema of Jenkins' xunit plugin. Error "usage" if
// nothing was checked.
std::string JUnit(const Document& document);
// One page that loads nothing: style, script and data are in it. It is complete without its script,
// except for graphs.
std::string Page(const Document& document);
// A chart as a picture of its own, and the same as part of a page.
std::string Svg(const Chart& chart);
std::string InlineSvg(const Chart& chart);
std::string InlineSvg(const std::vector<double>& series);
// Graphviz; groups are clusters.
std::string Dot(const Graph& graph);

// The form of a file is that of its ending: .html, .md, .xml, .json or .txt. Error "usage" for
// others, and for .xml unless the report lists checks.
void CheckForm(const std::filesystem::path& file, bool checks);
// Writes a file atomically. Error "usage", "file-io".
void Write(const Document& document, const std::filesystem::path& file);

}  // namespace mlc::report
