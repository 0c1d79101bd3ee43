#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/report/assets.h"
#include "lib/report/graph_data.h"
#include "lib/report/markup.h"
#include "lib/report/render.h"

namespace mlc::report {

namespace {

constexpr std::array<std::string_view, 4> kClasses = {"", "good", "notice", "bad"};
// U+2713, "!" and U+2717, so that no mark is a colour only.
constexpr std::array<std::string_view, 4> kSymbols = {"", "\xE2\x9C\x93", "!", "\xE2\x9C\x97"};

std::string Marked(Mark mark, const std::string& html) {
  if (mark == Mark::kNone) return html;
  const auto i = static_cast<size_t>(mark);
  constexpr size_t kShort = 24;  // stays on one line
  return fmt::format(
      R"(<span class="{}{}"><span class="symbol" aria-hidden="true">{}</span> {}</span>)",
      kClasses[i], html.size() <= kShort ? " short" : "", kSymbols[i],
      html.empty() ? std::string(Name(mark)) : html);
}

std::string CellHtml(const Cell& cell, Quantity unit) {
  std::string html = MarkupText(Text(cell, unit));
  html = InlineSvg(cell.numbers) + html;
  return Marked(cell.mark, html);
}

std::string FactsHtml(const Facts& facts) {
  if (facts.empty()) return "";
  std::string html = "<dl>";
  for (const Fact& fact : facts)
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", MarkupText(fact.name),
                        CellHtml(fact.cell, fact.unit));
  return html + "</dl>\n";
}

// Numbers that the text of a cell does not have in full are its sort key.
std::string SortKey(const Cell& cell) {
  const std::optional<double> number = cell.number();
  if (!number) return "";
  return std::isfinite(*number) ? fmt::format(" data-n=\"{:.6g}\"", *number)
                                : fmt::format(" data-n=\"{}Infinity\"", *number < 0 ? "-" : "");
}

std::string TableHtml(const Table& table) {
  std::string html = fmt::format(R"(<figure class="table" data-shown="{}">)", table.shown);
  if (!table.title.empty())
    html += fmt::format("<figcaption>{}</figcaption>", MarkupText(table.title));
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& column : table.columns)
    html +=
        fmt::format("<th scope=\"col\"{}>{}</th>",
                    column.unit == Quantity::kNone ? "" : " class=\"n\"", MarkupText(column.name));
  html += "</tr></thead><tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    html += "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c)
      html += fmt::format("<td{}{}>{}</td>",
                          table.columns[c].unit == Quantity::kNone ? "" : " class=\"n\"",
                          SortKey(row[c]), CellHtml(row[c], table.columns[c].unit));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></figure>\n";
}

std::string ChartHtml(const Chart& chart) {
  return fmt::format("<figure>{}{}</figure>\n",
                     chart.title.empty()
                         ? ""
                         : fmt::format("<figcaption>{}</figcaption>", MarkupText(chart.title)),
                     InlineSvg(chart));
}

std::string GraphHtml(const Graph& graph) {
  std::string data = GraphData(graph);
  // Nothing in the data may end its element; "<" stands in strings only.
  for (size_t i = 0; (i = data.find('<', i)) != data.npos;) data.replace(i, 1, "\\u003c");
  return fmt::format(
      R"(<div class="graph"><script type="application/json">{}</script><noscript><p>{}; the graph needs JavaScript.</p></noscript></div>)"
      "\n",
      data, OperationsText(graph));
}

std::string ContentHtml(const Content& block) {
  struct {
    std::string operator()(const std::string& text) {
      return fmt::format("<p>{}</p>\n", MarkupText(text));
    }
    std::string operator()(const Facts& facts) { return FactsHtml(facts); }
    std::string operator()(const Table& table) { return TableHtml(table); }
    std::string operator()(const Chart& chart) { return ChartHtml(chart); }
    std::string operator()(const Graph& graph) { return GraphHtml(graph); }
  } html;
  return std::visit(html, block);
}

}  // namespace

std::string Page(const Document& document) {
  std::string links, sections;
  bool graphs = false;
  for (size_t i = 0; i < document.sections.size(); ++i) {
    const Section& section = document.sections[i];
    const std::string title = MarkupText(section.title);
    links += fmt::format(R"(<a href="#s{}">{}</a>)", i, title);
    sections += fmt::format(
        "<section id=\"s{0}\" aria-labelledby=\"h{0}\"><h2 id=\"h{0}\">{1}</h2>\n", i, title);
    for (const Content& block : section.blocks) {
      graphs = graphs || std::holds_alternative<Graph>(block);
      sections += ContentHtml(block);
    }
    sections += "</section>\n";
  }
  const std::string verdict = CellHtml(document.verdict, Quantity::kNone);
  const std::pair<std::string_view, std::string> values[] = {
      {"title", MarkupText(document.title)},
      {"style", std::string(kChartStyle) + std::string(kPageStyle)},
      {"verdict", verdict.empty() ? "" : fmt::format("<p class=\"verdict\">{}</p>", verdict)},
      {"facts", FactsHtml(document.facts)},
      {"links", document.sections.size() > 1 ? links : ""},
      {"sections", sections},
      {"script", (graphs ? std::string(kGraphLayout) + std::string(kGraphView) : "") +
                     std::string(kPageScript)}};
  std::string page;
  std::string_view rest = kPageTemplate;
  for (size_t begin; (begin = rest.find("{{")) != rest.npos;) {
    const size_t end = rest.find("}}", begin);
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    page += rest.substr(0, begin);
    page +=
        std::ranges::find(values, name, &std::pair<std::string_view, std::string>::first)->second;
    rest.remove_prefix(end + 2);
  }
  return page + std::string(rest);
}

}  // namespace mlc::report
