#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "lib/report/render.h"

namespace mlc::report {

namespace {

// Text that Markdown would read as markup, escaped. A backslash before punctuation is literal
// (CommonMark 0.31, section 2.4), an underscore within a word is no emphasis (6.2), and `$` begins a
// formula on GitHub.
std::string Escaped(std::string_view text) {
  const auto is_word = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x20) {
      escaped += ' ';
      continue;
    }
    const bool markup = c == '_' ? i == 0 || !is_word(i - 1) || !is_word(i + 1)
                        : c == ']'
                            ? i + 1 < text.size() && text[i + 1] == '('
                            : std::string_view("\\`*<&|~$").find(c) != std::string_view::npos;
    if (markup) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string_view Symbol(Mark mark) {
  switch (mark) {
    case Mark::kGood:
      return "✅ ";
    case Mark::kNotice:
      return "⚠️ ";
    case Mark::kBad:
      return "❌ ";
    case Mark::kNone:
      break;
  }
  return "";
}

std::string CellText(const Cell& cell, Quantity unit) {
  std::string text = Escaped(Text(cell, unit));
  if (cell.numbers.size() > 1) text = fmt::format("{} {}", text, Sparkline(cell.numbers, 12));
  return fmt::format("{}{}", Symbol(cell.mark), text);
}

std::string FactsText(const Facts& facts) {
  if (facts.empty()) return "";
  std::string text = "| | |\n|---|---|\n";
  for (const Fact& fact : facts)
    text += fmt::format("| {} | {} |\n", Escaped(fact.name), CellText(fact.cell, fact.unit));
  return text;
}

std::string RowsText(const Table& table, size_t begin, size_t end) {
  std::string text = "|";
  for (const Column& column : table.columns) text += fmt::format(" {} |", Escaped(column.name));
  text += "\n|";
  for (const Column& column : table.columns)
    text += column.unit == Quantity::kNone ? "---|" : "---:|";
  text += "\n";
  for (size_t r = begin; r < end; ++r) {
    text += "|";
    for (size_t c = 0; c < table.columns.size(); ++c)
      text += fmt::format(" {} |", CellText(table.rows[r][c], table.columns[c].unit));
    text += "\n";
  }
  return text;
}

std::string ChartText(const Chart& chart) {
  if (chart.kind == Chart::Kind::kBars) return fmt::format("~~~~\n{}~~~~\n", TerminalText(chart));
  std::string text;
  for (const Series& series : chart.series) {
    const SeriesText shown = TextOf(series, chart.y);
    if (shown.line.empty()) continue;
    text += fmt::format("{}{}: `{}` {}\n", Escaped(chart.title),
                        chart.series.size() > 1 ? " (" + Escaped(series.name) + ")" : "",
                        shown.line, shown.range);
  }
  return text;
}

std::string ContentText(const Content& block) {
  struct {
    std::string operator()(const std::string& text) { return Escaped(text) + "\n"; }
    std::string operator()(const Facts& facts) { return FactsText(facts); }
    std::string operator()(const Table& table) { return Markdown(table); }
    std::string operator()(const Chart& chart) { return ChartText(chart); }
    std::string operator()(const Graph& graph) {
      return fmt::format("{}: {}\n", Escaped(graph.title), OperationsText(graph));
    }
  } text;
  return std::visit(text, block);
}

}  // namespace

std::string Markdown(const Table& table) {
  const size_t count = table.ShownRows();
  std::string text = table.title.empty() ? "" : fmt::format("**{}**\n\n", Escaped(table.title));
  text += RowsText(table, 0, count);
  if (count < table.rows.size())
    text += fmt::format("\n<details><summary>{} more</summary>\n\n{}\n</details>\n",
                        table.rows.size() - count, RowsText(table, count, table.rows.size()));
  return text;
}

std::string Markdown(const Document& document) {
  std::string text = fmt::format("## {}\n", Escaped(document.title));
  if (const std::string verdict = CellText(document.verdict, Quantity::kNone); !verdict.empty())
    text += fmt::format("\n**{}**\n", verdict);
  if (!document.facts.empty()) text += fmt::format("\n{}", FactsText(document.facts));
  for (const Section& section : document.sections) {
    text += fmt::format("\n### {}\n", Escaped(section.title));
    for (const Content& block : section.blocks)
      if (const std::string block_text = ContentText(block); !block_text.empty())
        text += fmt::format("\n{}", block_text);
  }
  return text;
}

}  // namespace mlc::report
