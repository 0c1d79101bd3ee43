#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/report/render.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;

namespace {

uint64_t WeightBytes(const Program& program) {
  uint64_t bytes = 0;
  for (const analysis::Weight& weight : analysis::WeightsOf(program)) bytes += weight.bytes;
  return bytes;
}

std::map<std::string, int64_t> OperatorCounts(const Program& program) {
  std::map<std::string, int64_t> counts;
  for (const auto& function : program.functions)
    for (const auto& [name, count] : OperatorsOf(*function)) counts[name] += count;
  return counts;
}

std::string SizesOf(const Tensor& tensor) {
  return tensor ? fmt::format("{} [{}]", Name(tensor.dtype()), fmt::join(tensor.dims(), ", ")) : "";
}

Cell ChangeCell(double before, double after) {
  if (before == after) return "same";
  if (before == 0) return "new";
  return fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

}  // namespace

report::Document DiffReport(const std::filesystem::path& a, const std::filesystem::path& b,
                            const DiffResult& result) {
  const verify::ProgramDiff& diff = result.found;
  const std::string first = a.filename().string(), second = b.filename().string();
  report::Document document{
      fmt::format("{} compared with {}", second, first), "diff",
      diff.same() ? Cell("identical", Mark::kGood) : Cell("different", Mark::kNotice)};
  document.facts = {{"before", a.string()}, {"after", b.string()}};

  std::vector<const verify::WeightPair*> changed;
  for (const verify::WeightPair& weight : diff.weights)
    if (weight.state != verify::WeightPair::State::kEqual) changed.push_back(&weight);
  std::ranges::stable_sort(changed, std::greater(), [](const verify::WeightPair* weight) {
    return std::pair(weight->state, weight->largest_difference);
  });
  report::Table sizes{"", {{""}, {"before"}, {"after"}, {"change"}}, {}};
  const uint64_t bytes_a = WeightBytes(*result.a), bytes_b = WeightBytes(*result.b);
  const std::map<std::string, int64_t> counts_a = OperatorCounts(*result.a),
                                       counts_b = OperatorCounts(*result.b);
  int64_t all_a = 0, all_b = 0;
  for (const auto& [name, count] : counts_a) all_a += count;
  for (const auto& [name, count] : counts_b) all_b += count;
  sizes.rows = {
      {"bytes of weights", report::Text(static_cast<double>(bytes_a), Quantity::kBytes),
       report::Text(static_cast<double>(bytes_b), Quantity::kBytes),
       ChangeCell(static_cast<double>(bytes_a), static_cast<double>(bytes_b))},
      {"operations", std::to_string(all_a), std::to_string(all_b),
       ChangeCell(static_cast<double>(all_a), static_cast<double>(all_b))},
      {"operations that match", std::to_string(diff.matched), std::to_string(diff.matched), ""},
      {"operations that differ", "", std::to_string(diff.operations.size()), ""},
      {"weights that differ", "", fmt::format("{} of {}", changed.size(), diff.weights.size()),
       ""}};
  document.sections.push_back({"Summary", {std::move(sizes)}});

  if (!diff.interface.empty()) {
    report::Table table{"", {{"change"}}, {}};
    for (const std::string& text : diff.interface) table.rows.push_back({text});
    document.sections.push_back({"Interface", {std::move(table)}});
  }
  if (!diff.operations.empty()) {
    report::Table counts{"Operators whose number differs",
                         {{"operator"},
                          {"before", Quantity::kCount},
                          {"after", Quantity::kCount},
                          {"difference", Quantity::kCount}},
                         {}};
    std::map<std::string, std::pair<int64_t, int64_t>> both;
    for (const auto& [name, count] : counts_a) both[name].first = count;
    for (const auto& [name, count] : counts_b) both[name].second = count;
    for (const auto& [name, count] : both)
      if (count.first != count.second)
        counts.rows.push_back({name, count.first, count.second, count.second - count.first});
    std::ranges::stable_sort(counts.rows, std::greater(), [](const std::vector<Cell>& row) {
      return std::abs(row[3].number().value_or(0));
    });
    report::Table table{"", {{"operation"}, {"operator"}, {"state"}, {"changes"}}, {}};
    for (const verify::OperationPair& pair : diff.operations) {
      const Operation& op = pair.a ? *pair.a : *pair.b;
      const std::string function = FunctionInDiff(op);
      table.rows.push_back({(function.empty() ? "" : function + ": ") + NameInDiff(op),
                            op.def->name,
                            !pair.b   ? "removed"
                            : !pair.a ? "added"
                                      : "changed",
                            fmt::format("{}", fmt::join(pair.changes, "; "))});
    }
    report::Section section{"Operations", {}};
    if (!counts.rows.empty()) section.blocks.push_back(std::move(counts));
    section.blocks.push_back(std::move(table));
    document.sections.push_back(std::move(section));
  }
  if (!changed.empty()) {
    report::Chart chart = report::BarChart("Largest differences of weights", "largest difference",
                                           Quantity::kError, true);
    report::Table table{"",
                        {{"weight"},
                         {"state"},
                         {"largest difference", Quantity::kError},
                         {"before"},
                         {"after"},
                         {"bytes before", Quantity::kBytes},
                         {"bytes after", Quantity::kBytes}},
                        {}};
    constexpr size_t kBars = 20;
    for (const verify::WeightPair* weight : changed) {
      const std::string name = fmt::format("{} {}", NameInDiff(*weight->a), weight->param);
      const bool far = weight->state == verify::WeightPair::State::kChanged;
      if (std::isfinite(weight->largest_difference) && chart.series[0].points.size() < kBars)
        chart.series[0].points.push_back({.y = weight->largest_difference,
                                          .label = name,
                                          .mark = far ? Mark::kNotice : Mark::kNone});
      table.rows.push_back({name, Cell(StateText(weight->state), far ? Mark::kNotice : Mark::kNone),
                            weight->largest_difference, SizesOf(weight->a->constant(weight->param)),
                            SizesOf(weight->b->constant(weight->param)), weight->bytes_a,
                            weight->bytes_b});
    }
    report::Section section{"Weights", {}};
    if (chart.series[0].points.size() > 1) section.blocks.push_back(std::move(chart));
    section.blocks.push_back(std::move(table));
    document.sections.push_back(std::move(section));
  }

  const auto check = [&](std::string_view name, size_t differences) {
    document.checks.push_back(
        {differences == 0 ? report::Check::Outcome::kPassed : report::Check::Outcome::kFailed,
         second, std::string(name),
         differences == 0 ? "" : fmt::format("{} differences from {}", differences, first)});
  };
  check("interface", diff.interface.size());
  check("operations", diff.operations.size());
  check("weights", changed.size());
  return document;
}

}  // namespace mlc::driver
