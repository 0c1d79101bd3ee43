#include <fmt/ranges.h>

#include <algorithm>

#include "lib/report/render.h"
#include "tools/driver/errors.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/reports.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

using report::Cell;
using report::Quantity;

namespace {

report::Table InterfaceTable(const Function& function) {
  report::Table table{"", {{""}, {"name"}, {"name in the source"}, {"type"}, {"sizes"}}, {}};
  const auto add = [&](std::string_view kind, const Port& port, const Value& value) {
    std::string sizes;
    if (port.enumerated_shapes.size() > 1) {
      sizes = "one of " + ShapesText(port);
    } else if (value.type.is_tensor()) {
      for (const Dim& dim : value.type.shape)
        if (const std::string open = SizesText(function, dim); !open.empty())
          sizes += (sizes.empty() ? "" : ", ") + open;
    }
    table.rows.push_back({kind, port.name, port.source_name == port.name ? "" : port.source_name,
                          value.type.ToString(), sizes});
  };
  const std::vector<const Value*> inputs = InputValues(function), states = StateValues(function);
  for (size_t i = 0; i < inputs.size(); ++i) add("input", function.inputs[i], *inputs[i]);
  for (size_t i = 0; i < states.size(); ++i) add("state", function.states[i], *states[i]);
  for (size_t i = 0; i < function.outputs.size(); ++i)
    add("output", function.outputs[i], *function.body.outputs()[i]);
  return table;
}

report::Section OperatorsSection(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& kind) { return kind.second; });
  constexpr size_t kBars = 15;
  report::Chart chart = report::BarChart("Most frequent operators", "operations", Quantity::kCount);
  report::Table table{"", {{"operator"}, {"operations", Quantity::kCount}}, {}};
  for (const auto& [name, count] : sorted) {
    if (chart.series[0].points.size() < kBars)
      chart.series[0].points.push_back({.y = static_cast<double>(count), .label = name});
    table.rows.push_back({name, count});
  }
  report::Section section{"Operators", {}};
  if (chart.series[0].points.size() > 1) section.blocks.push_back(std::move(chart));
  section.blocks.push_back(std::move(table));
  return section;
}

report::Section WeightsSection(const InspectResult& result) {
  struct Total {
    int64_t count = 0, elements = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Total> by_encoding;
  std::vector<const analysis::Weight*> sorted;
  for (const analysis::Weight& weight : result.weights) {
    sorted.push_back(&weight);
    Total& total = by_encoding[weight.encoding.empty()
                                   ? std::string(Name(weight.dtype))
                                   : fmt::format("{} to {}", weight.encoding, Name(weight.dtype))];
    ++total.count;
    total.elements += weight.elements();
    total.bytes += weight.bytes;
  }
  std::ranges::stable_sort(sorted, std::greater(), &analysis::Weight::bytes);
  report::Table encodings{"By encoding",
                          {{"encoding"},
                           {"weights", Quantity::kCount},
                           {"elements", Quantity::kCount},
                           {"bytes", Quantity::kBytes},
                           {"share", Quantity::kShare},
                           {"bits per element", Quantity::kNone}},
                          {}};
  for (const auto& [name, total] : by_encoding)
    encodings.rows.push_back({name, total.count, total.elements, total.bytes,
                              result.weight_bytes > 0 ? static_cast<double>(total.bytes) /
                                                            static_cast<double>(result.weight_bytes)
                                                      : 0,
                              fmt::format("{:.2f}", BitsOf(total.bytes, total.elements))});
  std::ranges::stable_sort(encodings.rows, std::greater(), [](const std::vector<Cell>& row) {
    return row[3].number().value_or(0);
  });
  constexpr size_t kBars = 15;
  report::Chart chart = report::BarChart("Largest weights", "bytes", Quantity::kBytes);
  report::Table table{"By size",
                      {{"weight"},
                       {"type"},
                       {"encoding"},
                       {"bytes", Quantity::kBytes},
                       {"bits per element", Quantity::kNone}},
                      {}};
  for (const analysis::Weight* weight : sorted) {
    if (chart.series[0].points.size() < kBars)
      chart.series[0].points.push_back(
          {.y = static_cast<double>(weight->bytes), .label = weight->name});
    table.rows.push_back(
        {weight->name, fmt::format("{} [{}]", Name(weight->dtype), fmt::join(weight->dims, ", ")),
         weight->encoding.empty() ? "dense" : std::string(weight->encoding), weight->bytes,
         fmt::format("{:.2f}", BitsOf(weight->bytes, weight->elements()))});
  }
  report::Section section{"Weights", {}};
  if (!encodings.rows.empty()) section.blocks.push_back(std::move(encodings));
  if (chart.series[0].points.size() > 1) section.blocks.push_back(std::move(chart));
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

}  // namespace

report::Document InspectReport(const std::filesystem::path& model, const InspectResult& result,
                               const InspectOptions& options) {
  const Program& program = *result.program;
  report::Document document{model.filename().string(), "inspect"};
  int64_t operations = 0;
  for (const auto& [name, count] : result.operators) operations += count;
  document.facts = {{"format", result.frontend->name},
                    {"needs", TargetName(result.needed)},
                    {"operations", operations, Quantity::kCount},
                    {"weights", result.weights.size(), Quantity::kCount},
                    {"bytes of weights", result.weight_bytes, Quantity::kBytes},
                    {"bits per weight",
                     fmt::format("{:.2f}", BitsOf(result.weight_bytes, result.weight_elements))},
                    {"work in fp16", result.fp16_share, Quantity::kShare}};
  for (const auto& [key, value] : Texts(program.interface)) document.facts.push_back({key, value});
  const bool several = program.functions.size() > 1;
  for (const auto& function : program.functions)
    document.sections.push_back(
        {several ? "Function " + function->name : "Interface", {InterfaceTable(*function)}});
  DrawnModel drawn = GraphOfModel(model, result, options);
  for (report::Graph& graph : drawn.graphs)
    document.sections.push_back(
        {several ? "Graph of " + graph.title : "Graph", {WithFlags(drawn.what), std::move(graph)}});
  document.sections.push_back(OperatorsSection(result.operators));
  if (!result.weights.empty()) document.sections.push_back(WeightsSection(result));
  return document;
}

}  // namespace mlc::driver
