#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tools/driver/errors.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;

namespace {

constexpr size_t kBars = 15;

// Latency over the run, of at most kMost predictions at equal distances.
report::Chart LatencyByPrediction(const std::vector<double>& times) {
  constexpr size_t kMost = 1500;
  report::Chart chart{report::Chart::Kind::kPlot,
                      "Time of each prediction",
                      {"prediction", Quantity::kCount},
                      {"time", Quantity::kMilliseconds},
                      {{"predict", {}}}};
  const size_t step = (times.size() + kMost - 1) / kMost;
  for (size_t i = 0; i < times.size(); i += step)
    chart.series[0].points.push_back({static_cast<double>(i), times[i]});
  return chart;
}

report::Section LatencySection(const BenchmarkResult& result, int64_t warmup) {
  const Statistics predict = result.predict.statistics();
  report::Section section{"Latency", {}};
  if (result.predict.times.size() > 1) {
    report::Chart histogram = report::Histogram("Predictions by time", "time",
                                                Quantity::kMilliseconds, result.predict.times);
    histogram.lines = {{"p50", predict.p50}, {"p95", predict.p95}, {"p99", predict.p99}};
    section.blocks.push_back(std::move(histogram));
  } else if (predict.count > 1) {
    report::Chart chart{report::Chart::Kind::kPlot,
                        "Time by percentile",
                        {"percentile", Quantity::kNone},
                        {"time", Quantity::kMilliseconds},
                        {{"predict", {}}}};
    for (int percent = 1; percent < 100; ++percent)
      chart.series[0].points.push_back(
          {static_cast<double>(percent), result.predict.together.Percentile(percent)});
    section.blocks.push_back(std::move(chart));
  }
  report::Table table{"", {{"part"}, {"runs", Quantity::kCount}}, {}};
  for (const StatisticsField& field : kStatisticsFields)
    table.columns.push_back({field.name, Quantity::kMilliseconds});
  const auto add = [&](std::string_view name, const Statistics& statistics) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {name, statistics.count};
    for (const StatisticsField& field : kStatisticsFields) row.push_back(statistics.*field.value);
  };
  add("predict", predict);
  add("marshal in", result.marshal_in.statistics());
  add("marshal out", result.marshal_out.statistics());
  add("overhead of mlc", result.overhead.statistics());
  if (!result.token_ms.empty()) add("each token", StatisticsOf(result.token_ms));
  section.blocks.push_back(std::move(table));
  if (result.predict.times.size() > 2)
    section.blocks.push_back(LatencyByPrediction(result.predict.times));
  for (const std::string& doubt : Doubts(result.predict.times, warmup))
    section.blocks.push_back(doubt);
  return section;
}

report::Section PhasesSection(const BenchmarkResult& result) {
  report::Chart chart =
      report::BarChart("Time of the whole command", "time", Quantity::kMilliseconds);
  for (const auto& [name, ms] : result.phases)
    chart.series[0].points.push_back({.y = std::max(0.0, ms), .label = name});
  return {"Phases", {std::move(chart)}};
}

report::Section OperationsSection(const Trace& trace, int64_t predictions) {
  report::Section section{"Operations by time", {}};
  const auto runs = static_cast<double>(std::max<int64_t>(1, predictions));
  const std::vector<OperationTime> operators = OperationTimes(trace, TimesOf::kOperators);
  if (operators.empty()) {
    section.blocks.push_back("This runtime does not report the times of operations.");
    return section;
  }
  double all = 0;
  for (const OperationTime& time : operators) all += time.ms;
  report::Chart chart =
      report::BarChart("Operators", "time of a prediction", Quantity::kMilliseconds);
  report::Table table{"Operations",
                      {{"operation"},
                       {"operator"},
                       {"time of a prediction", Quantity::kMilliseconds},
                       {"share", Quantity::kShare}},
                      {}};
  for (size_t i = 0; i < std::min(kBars, operators.size()); ++i)
    chart.series[0].points.push_back({.y = operators[i].ms / runs, .label = operators[i].op});
  for (const OperationTime& time : OperationTimes(trace, TimesOf::kOperations))
    table.rows.push_back({time.name, time.op, time.ms / runs, all > 0 ? time.ms / all : 0});
  section.blocks.push_back(std::move(chart));
  section.blocks.push_back(std::move(table));
  return section;
}

report::Section PlacementSection(const BenchmarkResult& result) {
  report::Section section{"Placement", {}};
  if (result.placements.empty()) {
    section.blocks.push_back(fmt::format("Requested {}; where operations run is unknown: {}",
                                         Name(result.units), result.no_placements));
    return section;
  }
  std::map<runtime::Device, std::pair<int64_t, double>> met;
  for (const runtime::OperationPlacement& placement : result.placements) {
    auto& [count, cost] = met[placement.preferred];
    ++count;
    cost += placement.cost.value_or(0);
  }
  report::Table devices{
      "Planned for",
      {{"device"}, {"operations", Quantity::kCount}, {"share of the cost", Quantity::kShare}},
      {}};
  for (const auto& [device, found] : met)
    devices.rows.push_back({Name(device), found.first, found.second});
  section.blocks.push_back(std::move(devices));
  report::Table elsewhere{fmt::format("Operations that are not planned for {}", Name(result.units)),
                          {{"operation"}, {"operator"}, {"device"}},
                          {}};
  for (const runtime::OperationPlacement* placement : Elsewhere(result))
    elsewhere.rows.push_back({placement->name, placement->op, Name(placement->preferred)});
  if (!elsewhere.rows.empty()) section.blocks.push_back(std::move(elsewhere));
  return section;
}

// The graph with the times and devices of its operations.
report::Graph MeasuredGraph(const BenchmarkResult& result, const Trace* trace,
                            int64_t predictions) {
  std::unordered_map<std::string, double> times;
  double all = 0;
  if (trace)
    for (const OperationTime& time : OperationTimes(*trace, TimesOf::kOperations)) {
      times[time.name] += time.ms;
      all += time.ms;
    }
  std::unordered_map<std::string, const runtime::OperationPlacement*> placements;
  for (const runtime::OperationPlacement& placement : result.placements)
    placements[placement.name] = &placement;
  const auto runs = static_cast<double>(std::max<int64_t>(1, predictions));
  return GraphOfFunction(*result.function, [&](const Operation&, report::Graph::Node& node) {
    if (const auto time = times.find(node.name); time != times.end()) {
      node.share = all > 0 ? time->second / all : 0;
      node.facts.emplace_back("time of a prediction",
                              fmt::format("{:.4f} ms", time->second / runs));
    }
    if (const auto at = placements.find(node.name); at != placements.end())
      node.place = Name(at->second->preferred);
  });
}

}  // namespace

report::Document RunReport(const std::filesystem::path& model, const BenchmarkResult& result,
                           const BenchmarkOptions& options, const BaselineCheck* check) {
  const std::string name = model.filename().string();
  const Statistics predict = result.predict.statistics();
  const runtime::Snapshot& telemetry = result.telemetry;
  report::Document document{fmt::format("Run of {}", name), "run"};
  const bool reference = result.units == runtime::Units::kReference;
  document.facts = {
      {"function", result.function->name},
      {"runtime", reference ? fmt::format("reference engine ({})", Describe(result.arithmetic))
                            : result.machine.runtime},
      {"units", Name(result.units)}};
  for (const auto& [label, text] :
       {std::pair{"chip", &result.machine.chip}, {"system", &result.machine.os}})
    if (!text->empty()) document.facts.push_back({label, *text});
  document.facts.push_back({"p50", predict.p50, Quantity::kMilliseconds});
  document.facts.push_back({"p95", predict.p95, Quantity::kMilliseconds});
  document.facts.push_back({"predictions", predict.count, Quantity::kCount});
  if (result.jobs > 1) document.facts.push_back({"at a time", result.jobs, Quantity::kCount});
  if (const std::optional<double> rate = PredictionsPerSecond(result))
    document.facts.push_back({"per second", *rate});
  document.facts.push_back({"load", result.load_ms, Quantity::kMilliseconds});
  if (result.compile_ms)
    document.facts.push_back({"compile", *result.compile_ms, Quantity::kMilliseconds});
  document.facts.push_back({"peak memory", telemetry.resident_high_water, Quantity::kBytes});

  const auto outcome = [](bool ok) {
    return ok ? report::Check::Outcome::kPassed : report::Check::Outcome::kFailed;
  };
  const int64_t lost = telemetry.failed + telemetry.fallbacks + telemetry.refused;
  document.checks.push_back(
      {telemetry.failed > 0 ? report::Check::Outcome::kError : outcome(lost == 0), name,
       "predictions",
       fmt::format("of {} predictions {} succeeded, {} failed, {} fell back, {} were refused",
                   telemetry.predictions, telemetry.succeeded, telemetry.failed,
                   telemetry.fallbacks, telemetry.refused),
       predict.mean * static_cast<double>(predict.count)});
  if (lost > 0 || !result.failures.empty()) {
    report::Table table{
        document.checks[0].text, {{"prediction", Quantity::kCount}, {"failure"}, {"error"}}, {}};
    for (const BenchmarkResult::Failed& failed : result.failures)
      table.rows.push_back({failed.prediction,
                            Cell(Name(runtime::FailureOf(failed.error.id())), Mark::kBad),
                            WithFlags(failed.error.text())});
    report::Section section{"Failures", {std::move(table)}};
    for (const runtime::CircuitBreaker::Change& change : result.breaker_changes)
      section.blocks.push_back(fmt::format("Circuit breaker: {} to {}: {}", Name(change.from),
                                           Name(change.to), change.reason));
    document.sections.push_back(std::move(section));
  }
  if (check) {
    report::Table table{"",
                        {{"figure"},
                         {"before", Quantity::kMilliseconds},
                         {"now", Quantity::kMilliseconds},
                         {"change", Quantity::kShare},
                         {"verdict"}},
                        {}};
    for (const BaselineCheck::Row& row : check->rows)
      table.rows.push_back({row.name, row.before, row.now,
                            row.before > 0 ? row.now / row.before - 1 : 0,
                            !row.judged  ? Cell()
                            : row.within ? Cell("no slower", Mark::kGood)
                                         : Cell("slower", Mark::kBad)});
    report::Section section{"Compared with the baseline", {std::move(table)}};
    for (const std::string& note : check->notes) section.blocks.push_back(WithFlags(note));
    document.sections.push_back(std::move(section));
    document.checks.push_back({outcome(check->within), name, "baseline",
                               check->notes.empty() ? "" : WithFlags(check->notes[0])});
  }
  if (!result.compared.empty()) {
    document.sections.push_back(
        {"Compared with " + result.compared_with, {ComparedTable(result.compared, false)}});
    for (report::Check& one : ComparedChecks(result.compared, false, name))
      document.checks.push_back(std::move(one));
  }
  if (options.require_units) {
    const size_t elsewhere = Elsewhere(result).size();
    document.checks.push_back(
        {outcome(!result.placements.empty() && elsewhere == 0), name, "units",
         result.placements.empty()
             ? result.no_placements
             : fmt::format("{} operations are planned for other devices", elsewhere)});
  }
  if (predict.count > 1) document.sections.push_back(LatencySection(result, options.warmup));
  if (options.profile && options.trace)
    document.sections.push_back(OperationsSection(*options.trace, predict.count + options.warmup));
  if (!reference) document.sections.push_back(PlacementSection(result));
  document.sections.push_back(PhasesSection(result));
  if (options.profile || !result.placements.empty())
    document.sections.push_back(
        {"Graph",
         {MeasuredGraph(result, options.profile ? options.trace.get() : nullptr,
                        predict.count + options.warmup)}});
  bool ok = true;
  for (const report::Check& one : document.checks)
    ok = ok && (one.outcome == report::Check::Outcome::kPassed ||
                one.outcome == report::Check::Outcome::kSkipped);
  document.verdict = ok ? Cell("PASSED", Mark::kGood) : Cell("FAILED", Mark::kBad);
  return document;
}

}  // namespace mlc::driver
