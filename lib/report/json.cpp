#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/report/graph_data.h"
#include "lib/report/render.h"
#include "lib/support/json_text.h"

namespace mlc::report {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kUnits[] = {"", "count", "bytes", "ms", "share", "error", "dB"};
constexpr std::string_view kMarks[] = {"", "good", "notice", "bad"};
constexpr std::string_view kOutcomes[] = {"passed", "failed", "skipped", "error"};
constexpr std::string_view kCharts[] = {"bars", "columns", "plot"};

ordered_json CellJson(const Cell& cell) {
  ordered_json value = cell.text;
  if (cell.numbers.size() == 1) value = NumberJson(cell.numbers[0], true);
  if (cell.numbers.size() > 1) {
    value = ordered_json::array();
    for (const double number : cell.numbers) value.push_back(NumberJson(number, true));
  }
  if (cell.mark == Mark::kNone) return value;
  return {{"value", value}, {"mark", kMarks[static_cast<int>(cell.mark)]}};
}

ordered_json WithUnit(ordered_json json, Quantity unit) {
  if (unit != Quantity::kNone) json["unit"] = kUnits[static_cast<int>(unit)];
  return json;
}

ordered_json FactsJson(const Facts& facts) {
  ordered_json json = ordered_json::array();
  for (const Fact& fact : facts)
    json.push_back(WithUnit({{"name", fact.name}, {"value", CellJson(fact.cell)}}, fact.unit));
  return json;
}

ordered_json TableJson(const Table& table) {
  ordered_json columns = ordered_json::array(), rows = columns;
  for (const Column& column : table.columns)
    columns.push_back(WithUnit({{"name", column.name}}, column.unit));
  for (const std::vector<Cell>& cells : table.rows) {
    ordered_json& row = rows.emplace_back(ordered_json::array());
    for (const Cell& cell : cells) row.push_back(CellJson(cell));
  }
  return {{"title", table.title}, {"columns", columns}, {"rows", rows}};
}

ordered_json AxisJson(const Axis& axis) {
  ordered_json json = WithUnit({{"label", axis.label}}, axis.unit);
  if (axis.logarithmic) json["logarithmic"] = true;
  return json;
}

ordered_json ChartJson(const Chart& chart) {
  ordered_json all = ordered_json::array();
  for (const Series& series : chart.series) {
    ordered_json points = ordered_json::array();
    for (const Point& point : series.points) {
      ordered_json& json = points.emplace_back();
      if (chart.kind != Chart::Kind::kBars) json["x"] = NumberJson(point.x, true);
      json["y"] = NumberJson(point.y, true);
      if (!point.label.empty()) json["label"] = point.label;
      if (point.limit) json["limit"] = NumberJson(*point.limit, true);
      if (point.mark != Mark::kNone) json["mark"] = kMarks[static_cast<int>(point.mark)];
    }
    all.push_back({{"name", series.name}, {"points", points}});
  }
  ordered_json json{{"kind", kCharts[static_cast<int>(chart.kind)]},
                    {"title", chart.title},
                    {"x", AxisJson(chart.x)},
                    {"y", AxisJson(chart.y)},
                    {"series", all}};
  if (chart.kind == Chart::Kind::kColumns) json["width"] = chart.width;
  for (const auto& [name, value] : chart.lines)
    json["lines"].push_back({{"name", name}, {"value", NumberJson(value, true)}});
  return json;
}

ordered_json ContentJson(const Content& block) {
  struct {
    ordered_json operator()(const std::string& text) { return {{"paragraph", text}}; }
    ordered_json operator()(const Facts& facts) { return {{"facts", FactsJson(facts)}}; }
    ordered_json operator()(const Table& table) { return {{"table", TableJson(table)}}; }
    ordered_json operator()(const Chart& chart) { return {{"chart", ChartJson(chart)}}; }
    ordered_json operator()(const Graph& graph) { return {{"graph", ParseJson(GraphData(graph))}}; }
  } json;
  return std::visit(json, block);
}

}  // namespace

std::string GraphData(const Graph& graph) {
  ordered_json nodes = ordered_json::array(), groups = nodes;
  for (const Graph::Node& node : graph.nodes) {
    ordered_json& json = nodes.emplace_back(
        ordered_json{{"op", node.kind}, {"name", node.name}, {"type", node.type}});
    if (!node.inputs.empty()) json["in"] = node.inputs;
    if (node.group >= 0) json["group"] = node.group;
    if (!node.precision.empty()) json["precision"] = node.precision;
    if (!node.place.empty()) json["place"] = node.place;
    if (node.mark != Mark::kNone) json["mark"] = kMarks[static_cast<int>(node.mark)];
    // Five digits are enough for readers, and pages of large graphs stay small.
    if (node.share > 0) json["share"] = std::round(node.share * 1e5) / 1e5;
    for (const auto& fact : node.facts) json["facts"].push_back({fact.first, fact.second});
  }
  for (const Graph::Group& group : graph.groups) {
    groups.push_back({{"name", group.name}});
    if (group.parent >= 0) groups.back()["parent"] = group.parent;
  }
  return JsonText({{"title", graph.title}, {"nodes", nodes}, {"groups", groups}}, -1,
                  BadUtf8::kReplace);
}

std::string Json(const Document& document) {
  ordered_json json{{"title", document.title}, {"command", document.command}};
  if (!document.verdict.empty()) json["verdict"] = CellJson(document.verdict);
  json["facts"] = FactsJson(document.facts);
  json["sections"] = ordered_json::array();
  for (const Section& section : document.sections) {
    ordered_json blocks = ordered_json::array();
    for (const Content& block : section.blocks) blocks.push_back(ContentJson(block));
    json["sections"].push_back({{"title", section.title}, {"blocks", blocks}});
  }
  if (!document.checks.empty()) json["checks"] = ordered_json::array();
  for (const Check& check : document.checks) {
    json["checks"].push_back({{"group", check.group},
                              {"name", check.name},
                              {"outcome", kOutcomes[static_cast<int>(check.outcome)]},
                              {"text", check.text}});
    if (check.milliseconds > 0) json["checks"].back()["ms"] = check.milliseconds;
  }
  return JsonText(json, 1, BadUtf8::kReplace) + "\n";
}

}  // namespace mlc::report
