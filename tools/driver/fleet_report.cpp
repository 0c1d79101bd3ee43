#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/report/render.h"
#include "tools/driver/errors.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;
using Status = BuildRecord::Status;

namespace {

// How a figure of a variant is shown and compared. A difference counts from `least`, which is of
// shares the difference, of others the ratio less 1.
struct Figure {
  std::string_view name;  // a prefix
  std::string_view shown;
  Quantity unit;
  bool lower_is_better;
  double least;
};
constexpr Figure kFigures[] = {
    {"size", "size", Quantity::kBytes, true, 0.001},
    {"error", "max error", Quantity::kError, true, 0.1},
    {"accuracy", "accuracy", Quantity::kShare, false, 0.0005},
    {"coverage", "on the Neural Engine", Quantity::kShare, false, 0.0005},
    {"fp16", "in fp16", Quantity::kShare, false, 0.0005},
    {"operations", "operations", Quantity::kCount, true, 0},
    {"p50", "p50", Quantity::kMilliseconds, true, 0.05},
};

// The figure of a name, which is that of a row or, for measurements, begins with it.
const Figure* FigureOf(std::string_view name) {
  for (const Figure& figure : kFigures)
    if (name == figure.name || name.starts_with(std::string(figure.name) + " ")) return &figure;
  return nullptr;
}
std::string ShownName(const std::string& name) {
  const Figure* figure = FigureOf(name);
  return figure && name == figure->name ? std::string(figure->shown) : name;
}

Mark MarkOf(Status status) {
  return status == Status::kPassed || status == Status::kUpToDate ? Mark::kGood : Mark::kBad;
}

struct Change {
  std::string variant, figure, before, after;
  double by = 0;           // above 0: worse
  std::string shown = {};  // the difference with its sign
  bool status = false;
};

// Differences of a variant from the last build that has it.
void AddChanges(const std::string& name, const VariantFigures& before, const VariantFigures& now,
                std::vector<Change>& changes) {
  const auto good = [](const std::string& status) {
    return status == Name(Status::kPassed) || status == Name(Status::kUpToDate);
  };
  if (good(before.status) != good(now.status))
    changes.push_back({name, "status", before.status, now.status,
                       good(now.status) ? -INFINITY : INFINITY, "", true});
  for (const auto& [figure, value] : now.figures) {
    const auto last = before.figures.find(figure);
    const Figure* kind = FigureOf(figure);
    if (last == before.figures.end() || !kind || last->second == value) continue;
    const bool share = kind->unit == Quantity::kShare;
    const double difference = share              ? value - last->second
                              : last->second > 0 ? value / last->second - 1
                                                 : INFINITY;
    if (std::abs(difference) <= kind->least) continue;
    changes.push_back({name, ShownName(figure), report::Text(last->second, kind->unit),
                       report::Text(value, kind->unit),
                       kind->lower_is_better ? difference : -difference,
                       share                    ? fmt::format("{:+.1f} points", 100 * difference)
                       : std::isinf(difference) ? "from 0"
                                                : fmt::format("{:+.1f} %", 100 * difference)});
  }
}

report::Section ChangesSection(const std::map<std::string, VariantFigures>& now,
                               const std::vector<PastBuild>& history) {
  report::Section section{"Changes since the last build", {}};
  if (history.empty()) {
    section.blocks.push_back("There is no earlier build.");
    return section;
  }
  std::vector<Change> changes;
  std::vector<std::string> added, removed;
  for (const auto& [name, figures] : now) {
    // The last build may have left the variant out.
    const auto last = std::find_if(history.rbegin(), history.rend(), [&](const PastBuild& build) {
      return build.variants.contains(name);
    });
    if (last == history.rend())
      added.push_back(name);
    else
      AddChanges(name, last->variants.at(name), figures, changes);
  }
  for (const auto& [name, figures] : history.back().variants)
    if (!now.contains(name)) removed.push_back(name);
  std::ranges::stable_sort(changes, std::greater(), &Change::by);
  report::Table table{
      "Worst first", {{"variant"}, {"figure"}, {"before"}, {"now"}, {"change"}}, {}};
  int64_t worse = 0;
  for (const Change& change : changes) {
    worse += change.by > 0;
    table.rows.push_back(
        {change.variant, change.figure, change.before, change.after,
         Cell(fmt::format("{} {}", change.by > 0 ? "worse" : "better", change.shown),
              change.by > 0 ? change.status ? Mark::kBad : Mark::kNotice : Mark::kGood)});
  }
  section.blocks.push_back(
      fmt::format("{} figures are worse than in the build of {}, {} better; {} variants are new, "
                  "{} were removed.",
                  worse, history.back().time, changes.size() - static_cast<size_t>(worse),
                  added.size(), removed.size()));
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  for (const auto& [text, names] : {std::pair{"New", &added}, {"Removed", &removed}})
    if (!names->empty())
      section.blocks.push_back(fmt::format("{}: {}.", text, fmt::join(*names, ", ")));
  return section;
}

std::optional<report::Section> FailuresSection(const BuildReport& build) {
  report::Table errors{"Errors", {{"error"}, {"variants", Quantity::kCount}, {"names"}}, {}},
      checks{"Checks", {{"variant"}, {"failed"}}, {}};
  for (const MessageGroup& group : GroupErrors(build))
    errors.rows.push_back(
        {Cell(WithFlags(fmt::format("[{}] {}", group.first.id(), group.first.text())), Mark::kBad),
         group.variants.size(), fmt::format("{}", fmt::join(group.variants, ", "))});
  for (const BuildReport::Recipe& recipe : build.recipes)
    for (const BuildRecord& record : recipe.variants)
      for (const BuildCheck& check : record.checks)
        if (!check.ok) checks.rows.push_back({record.name, Cell(Describe(check), Mark::kBad)});
  report::Section section{"Failures", {}};
  for (report::Table* table : {&errors, &checks})
    if (!table->rows.empty()) section.blocks.push_back(std::move(*table));
  return section.blocks.empty() ? std::nullopt : std::optional(std::move(section));
}

report::Table VariantsTable(const std::vector<const BuildRecord*>& records,
                            const std::map<std::string, VariantFigures>& now,
                            const std::vector<PastBuild>& history) {
  constexpr size_t kMostPoints = 30;  // of a small line
  std::vector<std::string> names;     // those that some variant has, in the order of the table
  for (const Figure& figure : kFigures)
    for (const auto& [name, variant] : now)
      for (const auto& [found, value] : variant.figures)
        if (FigureOf(found) == &figure && std::ranges::find(names, found) == names.end())
          names.push_back(found);
  report::Table table{"", {{"variant"}, {"status"}}, {}};
  for (const std::string& name : names)
    table.columns.push_back({ShownName(name), FigureOf(name)->unit});
  table.columns.push_back({"time", Quantity::kMilliseconds});
  table.columns.push_back({"options"});
  for (const BuildRecord* record : records) {
    const VariantFigures& variant = now.at(record->name);
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {record->name, Cell(Name(record->status), MarkOf(record->status))};
    for (const std::string& name : names) {
      const auto value = variant.figures.find(name);
      std::vector<double> series;
      if (value != variant.figures.end()) {
        for (size_t i = history.size() - std::min(history.size(), kMostPoints - 1);
             i < history.size(); ++i)
          if (const auto past = history[i].variants.find(record->name);
              past != history[i].variants.end())
            if (const auto figure = past->second.figures.find(name);
                figure != past->second.figures.end())
              series.push_back(figure->second);
        series.push_back(value->second);
      }
      row.push_back(std::move(series));
    }
    row.push_back(1000 * record->seconds);
    row.push_back(record->options);
  }
  return table;
}

report::Chart Largest(std::string title, const std::vector<const BuildRecord*>& records,
                      Quantity unit, const std::function<double(const BuildRecord&)>& value) {
  constexpr size_t kBars = 15;
  report::Chart chart = report::BarChart(std::move(title), "", unit);
  std::vector<report::Point>& points = chart.series[0].points;
  for (const BuildRecord* record : records)
    if (const double y = value(*record); y > 0) points.push_back({.y = y, .label = record->name});
  std::ranges::stable_sort(points, std::greater(), &report::Point::y);
  points.resize(std::min(points.size(), kBars));
  return chart;
}

}  // namespace

report::Document FleetReport(const BuildReport& build,
                             const std::map<std::string, VariantFigures>& figures,
                             const std::vector<PastBuild>& history) {
  const bool ok = build.exit_code() == 0;
  report::Document document{fmt::format("Build of {} variants", figures.size()), "build",
                            Cell(ok ? "PASSED" : "FAILED", ok ? Mark::kGood : Mark::kBad)};
  for (const Status status :
       {Status::kPassed, Status::kFailed, Status::kNotBuilt, Status::kUpToDate})
    document.facts.push_back({std::string(Name(status)), build.Count(status), Quantity::kCount});
  document.facts.push_back({"time", fmt::format("{:.1f} s", build.seconds)});
  if (!history.empty())
    document.facts.push_back({"earlier builds", history.size(), Quantity::kCount});

  std::vector<const BuildRecord*> records;
  for (const BuildReport::Recipe& recipe : build.recipes) {
    for (const Error& error : recipe.errors)
      document.checks.push_back(
          {report::Check::Outcome::kError, recipe.path, "recipe", WithFlags(error.text())});
    for (const BuildRecord& record : recipe.variants) records.push_back(&record);
  }
  std::ranges::stable_sort(records, {}, [](const BuildRecord* record) { return record->ok(); });
  if (std::optional<report::Section> failures = FailuresSection(build))
    document.sections.push_back(std::move(*failures));
  document.sections.push_back(ChangesSection(figures, history));
  document.sections.push_back({"Variants", {VariantsTable(records, figures, history)}});
  report::Table warnings{"", {{"warning"}, {"variants", Quantity::kCount}, {"names"}}, {}};
  for (const MessageGroup& group : GroupWarnings(build))
    warnings.rows.push_back({Cell(WithFlags(group.first.text()), Mark::kNotice),
                             group.variants.size(),
                             fmt::format("{}", fmt::join(group.variants, ", "))});
  if (!warnings.rows.empty()) document.sections.push_back({"Warnings", {std::move(warnings)}});
  report::Section charts{"Figures", {}};
  for (report::Chart& chart : std::vector{
           Largest(
               "Largest packages", records, Quantity::kBytes,
               [](const BuildRecord& record) { return static_cast<double>(record.package_bytes); }),
           Largest("Longest builds", records, Quantity::kMilliseconds,
                   [](const BuildRecord& record) { return 1000 * record.seconds; })})
    if (chart.series[0].points.size() > 1) charts.blocks.push_back(std::move(chart));
  if (!charts.blocks.empty()) document.sections.push_back(std::move(charts));

  for (const BuildRecord* record : records) {
    const bool built = record->errors.empty() && record->status != Status::kNotBuilt;
    std::string text;
    for (const Error& error : record->errors)
      text += (text.empty() ? "" : "\n") + WithFlags(error.text());
    if (record->errors.empty()) text = Name(record->status);
    document.checks.push_back({built                    ? report::Check::Outcome::kPassed
                               : record->errors.empty() ? report::Check::Outcome::kSkipped
                                                        : report::Check::Outcome::kError,
                               record->name, "build", text, 1000 * record->seconds});
    for (const BuildCheck& check : record->checks)
      document.checks.push_back({!check.judged ? report::Check::Outcome::kSkipped
                                 : check.ok    ? report::Check::Outcome::kPassed
                                               : report::Check::Outcome::kFailed,
                                 record->name, check.what, Describe(check)});
  }
  return document;
}

}  // namespace mlc::driver
