#include "tools/mlc/run_timings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"

namespace mlc::driver {

namespace {

std::string TimesText(std::string_view name, const Statistics& times) {
  std::string text = fmt::format("  {:<12}", name);
  for (const StatisticsField& field : kStatisticsFields)
    text += fmt::format(" {:>9.3f}", times.*field.value);
  return text + "\n";
}

// "9.60 kB more"
std::string MoreText(double bytes) {
  return fmt::format("{} {}", BytesText(static_cast<uint64_t>(std::abs(bytes))),
                     bytes < 0 ? "less" : "more");
}

std::string PlacedText(const BenchmarkResult& result) {
  if (result.units == runtime::Units::kReference) return "";
  if (result.placements.empty())
    return fmt::format("requested {}, planned for: unknown ({})\n", Name(result.units),
                       result.no_placements);
  std::map<runtime::Device, std::pair<int64_t, double>> met;
  for (const runtime::OperationPlacement& placement : result.placements) {
    auto& [count, cost] = met[placement.preferred];
    ++count;
    cost += placement.cost.value_or(0);
  }
  std::string text = fmt::format("requested {}, planned for:", Name(result.units));
  for (const auto& [device, found] : met) {
    text += fmt::format(" {} {} of {}", Name(device), found.first, result.placements.size());
    if (found.second > 0) text += fmt::format(" ({:.0f} % of the cost)", 100 * found.second);
  }
  text += " operations\n";
  const std::vector<const runtime::OperationPlacement*> elsewhere = Elsewhere(result);
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, elsewhere.size()); ++i)
    text += fmt::format("  {} \"{}\": {}\n", elsewhere[i]->op, elsewhere[i]->name,
                        Name(elsewhere[i]->preferred));
  if (elsewhere.size() > kShown)
    text += fmt::format("  and {} more elsewhere\n", elsewhere.size() - kShown);
  return text;
}

std::string FailuresText(const BenchmarkResult& result) {
  std::string text;
  const runtime::Snapshot& telemetry = result.telemetry;
  if (!result.failures.empty() || telemetry.fallbacks > 0 || telemetry.refused > 0) {
    std::string kinds;
    for (int i = 0; i < runtime::kFailures; ++i)
      if (telemetry.failures[i] > 0)
        kinds +=
            fmt::format(", {} {}", Name(static_cast<runtime::Failure>(i)), telemetry.failures[i]);
    text +=
        fmt::format("of {} predictions {} succeeded, {} failed, {} fell back, {} were refused{}\n",
                    telemetry.predictions, telemetry.succeeded, telemetry.failed,
                    telemetry.fallbacks, telemetry.refused, kinds);
  }
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < std::min(kShown, result.failures.size()); ++i) {
    const auto& [prediction, error] = result.failures[i];
    text += fmt::format("  prediction {}: {}[{}]: {}\n", prediction,
                        Name(runtime::FailureOf(error.id())), error.id(), WithFlags(error.text()));
  }
  if (result.failures.size() > kShown)
    text += fmt::format("  and {} more\n", result.failures.size() - kShown);
  for (const runtime::CircuitBreaker::Change& change : result.breaker_changes)
    text += fmt::format("circuit breaker: {} to {}: {}\n", Name(change.from), Name(change.to),
                        change.reason);
  return text;
}

}  // namespace

std::string MeasuredText(const BenchmarkResult& result, const BenchmarkOptions& options) {
  std::string text;
  const Statistics predict = result.predict.statistics();
  if (predict.count > 1) {
    text += fmt::format("  {:<12}", "ms");
    for (const StatisticsField& field : kStatisticsFields)
      text += fmt::format(" {:>9}", field.name);
    text += "\n";
    for (auto [name, part] : {std::pair{"marshal in", &result.marshal_in},
                              {"predict", &result.predict},
                              {"marshal out", &result.marshal_out},
                              {"overhead", &result.overhead}})
      text += TimesText(name, part->statistics());
    if (!result.token_ms.empty()) text += TimesText("each token", StatisticsOf(result.token_ms));
    for (const std::string& doubt : Doubts(result.predict.times, options.warmup))
      text += fmt::format("  {}\n", doubt);
  }
  text += fmt::format("load {:.2f} ms", result.load_ms);
  if (result.compile_ms) text += fmt::format(", compile {:.2f} ms", *result.compile_ms);
  if (result.warm_load_ms) text += fmt::format(", load again {:.2f} ms", *result.warm_load_ms);
  if (const std::optional<double> rate = PredictionsPerSecond(result); rate && predict.count > 1)
    text += fmt::format("; {:.1f} {} per second", *rate,
                        result.measures == "predictions" ? result.measures : "runs");
  if (result.queue) text += fmt::format(", {} at a time", options.jobs);
  text += "\n";
  if (options.soak) {
    text += fmt::format("memory: peak {}",
                        BytesText(static_cast<uint64_t>(result.telemetry.resident_high_water)));
    if (result.telemetry.growth_per_100)
      text += fmt::format(", {} per 100 predictions", MoreText(*result.telemetry.growth_per_100));
    text += "\n";
  }
  text += PlacedText(result) + FailuresText(result);
  if (!options.compare.empty() && result.compared.empty())
    text += fmt::format("compared with {}: the model made no prediction itself\n",
                        result.compared_with);
  if (!result.compared.empty())
    text +=
        fmt::format("compared with {}:\n{}{}\n", result.compared_with,
                    WithFlags(verify::ReportText(result.compared)), VerdictText(result.compared));
  constexpr size_t kWorst = 10;
  if (result.operations) text += verify::LayersText(*result.operations, kWorst);
  return text;
}

std::string ProfileText(const Trace& trace, int64_t predictions) {
  const std::vector<OperationTime> sorted = OperationTimes(trace, TimesOf::kOperators);
  if (sorted.empty()) return "operations: this runtime does not report their times\n";
  double all = 0;
  for (const OperationTime& time : sorted) all += time.ms;
  std::string text =
      fmt::format("  {:<28} {:>7} {:>10} {:>7}\n", "operator", "count", "ms", "share");
  constexpr size_t kShown = 15;
  const auto runs = static_cast<double>(std::max<int64_t>(1, predictions));
  for (size_t i = 0; i < std::min(kShown, sorted.size()); ++i)
    text += fmt::format("  {:<28} {:>7.0f} {:>10.3f} {:>6.1f} %\n", sorted[i].op,
                        static_cast<double>(sorted[i].count) / runs, sorted[i].ms / runs,
                        all > 0 ? 100 * sorted[i].ms / all : 0);
  return text;
}

std::string BaselineText(const BaselineCheck& check, double tolerance) {
  std::string text = "  compared with the baseline, in ms\n";
  for (const BaselineCheck::Row& row : check.rows)
    text += fmt::format("  {:<12} {:>9.3f} was {:>9.3f}  {:+6.1f} %{}\n", row.name, row.now,
                        row.before, row.before > 0 ? 100 * (row.now / row.before - 1) : 0,
                        !row.judged  ? ""
                        : row.within ? fmt::format("  within {:.0f} %", 100 * tolerance)
                                     : fmt::format("  more than {:.0f} %", 100 * tolerance));
  for (const std::string& note : check.notes) text += fmt::format("  {}\n", note);
  return text + (check.within ? "no slower\n" : "SLOWER\n");
}

std::string SweepText(const SweepResult& sweep) {
  std::string text = fmt::format("  {:<10} {:>9} {:>9} {:>9} {:>10}  {}\n", "units", "p50 ms",
                                 "p95 ms", "load ms", "per second", "operations planned for");
  for (const SweepRow& row : sweep.rows) {
    if (row.error) {
      text += fmt::format("  {:<10} {}[{}]: {}\n", Name(row.units), "error", row.error->id(),
                          row.error->text());
      continue;
    }
    const BenchmarkResult& result = *row.result;
    const Statistics times = result.predict.statistics();
    std::map<runtime::Device, int64_t> met;
    for (const runtime::OperationPlacement& placement : result.placements)
      ++met[placement.preferred];
    std::string meant;
    for (const auto& [device, count] : met)
      meant += fmt::format("{}{} {}", meant.empty() ? "" : ", ", Name(device), count);
    text += fmt::format("  {:<10} {:>9.3f} {:>9.3f} {:>9.1f} {:>10.1f}  {}{}\n", Name(row.units),
                        times.p50, times.p95, result.load_ms,
                        PredictionsPerSecond(result).value_or(0), meant.empty() ? "unknown" : meant,
                        row.trouble.empty() ? "" : "; " + row.trouble);
  }
  return text + (sweep.recommended ? fmt::format("recommended: --units {} ({})\n",
                                                 Name(*sweep.recommended), sweep.why)
                                   : fmt::format("no recommendation: {}\n", sweep.why));
}

}  // namespace mlc::driver
