#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/report/render.h"

namespace mlc::report {

std::string Text(double number, Quantity unit) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  switch (unit) {
    case Quantity::kNone:
      return fmt::format("{:.6g}", number);
    case Quantity::kCount:
      return fmt::format("{:.0f}", number);
    case Quantity::kBytes:
      for (const auto& [name, size] : {std::pair{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}})
        if (std::abs(number) >= size) return fmt::format("{:.2f} {}", number / size, name);
      return fmt::format("{:.0f} B", number);
    case Quantity::kMilliseconds:
      return std::abs(number) < 10'000 ? fmt::format("{:.3f} ms", number)
                                       : fmt::format("{:.1f} s", number / 1000);
    case Quantity::kShare:
      return fmt::format("{:.1f} %", 100 * number);
    case Quantity::kError:
      return number == 0 ? "0" : fmt::format("{:.1e}", number);
    case Quantity::kDecibels:
      return fmt::format("{:.1f} dB", number);
  }
  return "";
}

std::string Text(const Cell& cell, Quantity unit) {
  return cell.numbers.empty() ? cell.text : Text(cell.numbers.back(), unit);
}

std::string_view Name(Mark mark) {
  switch (mark) {
    case Mark::kGood:
      return "ok";
    case Mark::kNotice:
      return "note";
    case Mark::kBad:
      return "FAIL";
    case Mark::kNone:
      break;
  }
  return "";
}

std::string Sparkline(const std::vector<double>& numbers, size_t most) {
  std::vector<double> shown;
  const size_t count = std::min(numbers.size(), most);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * numbers.size() / count, end = (i + 1) * numbers.size() / count;
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += numbers[k];
    shown.push_back(sum / static_cast<double>(end - begin));
  }
  double low = INFINITY, high = -INFINITY;
  for (const double number : shown)
    if (std::isfinite(number)) low = std::min(low, number), high = std::max(high, number);
  std::string line;
  for (const double number : shown) {
    if (!std::isfinite(number)) {
      line += ' ';
      continue;
    }
    // Equal numbers are a line at middle height.
    const int height =
        high > low ? static_cast<int>(std::lround(7 * (number - low) / (high - low))) : 3;
    line += "\xE2\x96";
    line += static_cast<char>(0x81 + height);
  }
  return line;
}

SeriesText TextOf(const Series& series, const Axis& y) {
  if (series.points.empty()) return {};
  std::vector<double> numbers;
  double low = INFINITY, high = -INFINITY;
  for (const Point& point : series.points) {
    numbers.push_back(y.logarithmic ? std::log10(std::max(point.y, 1e-30)) : point.y);
    low = std::min(low, point.y), high = std::max(high, point.y);
  }
  return {Sparkline(numbers), fmt::format("{} to {}", Text(low, y.unit), Text(high, y.unit))};
}

namespace {

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, Width(text)), ' ');
  return right ? space + text : text + space;
}

// A cell on one line, with the word of its mark unless it says the same.
std::string CellText(const Cell& cell, Quantity unit) {
  std::string text = Text(cell, unit);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (cell.numbers.size() > 1) text = fmt::format("{} {}", Sparkline(cell.numbers, 20), text);
  if (text.empty()) return std::string(Name(cell.mark));
  return text;
}

std::string FactsText(const Facts& facts) {
  size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, Width(fact.name));
  std::string text;
  for (const Fact& fact : facts)
    text +=
        fmt::format("{}  {}\n", Padded(fact.name, width, false), CellText(fact.cell, fact.unit));
  return text;
}

std::string GraphText(const Graph& graph) {
  return fmt::format("{}: {}; pages (.html) show the graph\n", graph.title, OperationsText(graph));
}

std::string ContentText(const Content& block) {
  struct {
    std::string operator()(const std::string& text) { return text + "\n"; }
    std::string operator()(const Facts& facts) { return FactsText(facts); }
    std::string operator()(const Table& table) {
      return (table.title.empty() ? "" : table.title + "\n") + TerminalText(table);
    }
    std::string operator()(const Chart& chart) { return TerminalText(chart); }
    std::string operator()(const Graph& graph) { return GraphText(graph); }
  } text;
  return std::visit(text, block);
}

}  // namespace

std::string TerminalText(const Chart& chart) {
  std::string text = chart.title.empty() ? "" : chart.title + "\n";
  constexpr int kBar = 40;
  for (const Series& series : chart.series) {
    if (chart.kind != Chart::Kind::kBars) {
      const SeriesText shown = TextOf(series, chart.y);
      if (!shown.line.empty())
        text += fmt::format("  {}  {} ({})\n", shown.line, shown.range, series.name);
      continue;
    }
    size_t width = 0;
    double most = 0;
    for (const Point& point : series.points) {
      width = std::max(width, Width(point.label));
      if (std::isfinite(point.y)) most = std::max(most, point.y);
    }
    for (const Point& point : series.points) {
      const double share = most > 0 ? std::min(1.0, point.y / most) : 0;
      std::string bar;
      for (int i = 0; i < std::lround(kBar * share); ++i) bar += "\xE2\x96\x88";
      text += fmt::format("  {}  {}  {}\n", Padded(point.label, width, false),
                          Padded(Text(point.y, chart.y.unit), 10, true), bar);
    }
  }
  return text;
}

std::string TerminalText(const Table& table) {
  const size_t count = table.ShownRows();
  std::vector<std::vector<std::string>> lines(1);
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (const Column& column : table.columns) {
    lines[0].push_back(column.name);
    right.push_back(column.unit != Quantity::kNone);
  }
  for (size_t r = 0; r < count; ++r) {
    std::vector<std::string>& cells = lines.emplace_back();
    for (size_t c = 0; c < table.columns.size(); ++c)
      cells.push_back(CellText(table.rows[r][c], table.columns[c].unit));
  }
  for (size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(0);
    for (const auto& cells : lines) widths[c] = std::max(widths[c], Width(cells[c]));
  }
  std::string text;
  for (const auto& cells : lines) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      line += Padded(cells[c], widths[c], right[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (count < table.rows.size()) text += fmt::format("... {} more\n", table.rows.size() - count);
  return text;
}

std::string TerminalText(const Document& document) {
  std::string text = document.title + "\n";
  if (!document.verdict.empty()) text += document.verdict.text + "\n";
  text += FactsText(document.facts);
  for (const Section& section : document.sections) {
    text += fmt::format("\n{}\n{:-<{}}\n", section.title, "", Width(section.title));
    for (size_t i = 0; i < section.blocks.size(); ++i) {
      if (i > 0) text += "\n";
      text += ContentText(section.blocks[i]);
    }
  }
  return text;
}

}  // namespace mlc::report
