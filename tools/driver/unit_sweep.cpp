#include "tools/driver/unit_sweep.h"

#include "tools/driver/benchmark_report.h"
#include "tools/driver/errors.h"
#include "tools/driver/runtimes.h"

namespace mlc::driver {

namespace {

constexpr double kAlike = 0.05;

// Returns the units of the rows, in ascending order of the devices that they use.
std::vector<runtime::Units> UnitsHere() {
  if (DefaultUnits() == runtime::Units::kReference) return {runtime::Units::kReference};
  const std::vector<runtime::Device> devices =
      MakeRuntime(runtime::Units::kAll, {})->capabilities().devices;
  std::vector<runtime::Units> units{runtime::Units::kCpu};
  for (auto [device, unit] : {std::pair{runtime::Device::kAne, runtime::Units::kAne},
                              {runtime::Device::kGpu, runtime::Units::kGpu}})
    if (std::ranges::find(devices, device) != devices.end()) units.push_back(unit);
  units.push_back(runtime::Units::kAll);
  return units;
}

std::string Trouble(const BenchmarkResult& result, const BenchmarkOptions& options) {
  const runtime::Snapshot& telemetry = result.telemetry;
  if (!result.failures.empty())
    return fmt::format("{} of {} predictions failed, the first: {}", result.failures.size(),
                       telemetry.predictions, WithFlags(result.failures[0].error.text()));
  if (telemetry.fallbacks + telemetry.refused > 0)
    return fmt::format("{} of {} predictions were not made by the model",
                       telemetry.fallbacks + telemetry.refused, telemetry.predictions);
  if (!options.compare.empty() && Judge(result.compared) != verify::Verdict::kPassed)
    return VerdictText(result.compared);
  if (options.require_units && (result.placements.empty() || !Elsewhere(result).empty()))
    return "not on the requested units";
  return "";
}

}  // namespace

SweepResult Sweep(const std::filesystem::path& model, const BenchmarkOptions& options,
                  Diagnostics& diagnostics) {
  if (options.soak || !options.output_folder.empty())
    throw Error("usage", "--units sweep cannot be combined with --soak or --output-dir")
        .Help("run again with the recommended units");
  SweepResult sweep;
  BenchmarkOptions each = options;
  double best = 0;
  for (runtime::Units units : UnitsHere()) {
    SweepRow& row = sweep.rows.emplace_back();
    row.units = each.units.emplace(units);
    each.hints = units == runtime::Units::kReference ? runtime::LoadOptions() : options.hints;
    try {
      row.result.emplace(Benchmark(model, each, diagnostics));
    } catch (const Error& error) {
      if (ExitCode(error.id()) == ExitCode("usage")) throw;
      row.error = error;
      continue;
    }
    row.trouble = Trouble(*row.result, options);
    const double p50 = row.result->predict.statistics().p50;
    if (row.trouble.empty() && (best == 0 || p50 < best)) best = p50;
  }
  for (const SweepRow& row : sweep.rows) {
    if (!row.result || !row.trouble.empty()) continue;
    const double p50 = row.result->predict.statistics().p50;
    if (sweep.recommended || p50 > best * (1 + kAlike)) continue;
    sweep.recommended = row.units;
    sweep.why = p50 == best ? "the fastest"
                            : fmt::format("within {:.0f} % of the fastest, with fewer devices",
                                          100 * (p50 / best - 1) + 0.5);
  }
  if (!sweep.recommended)
    sweep.why = "none ran without failures";
  else if (DefaultUnits() == runtime::Units::kReference)
    sweep.why = "the only units here: Core ML runs on Apple's systems";
  return sweep;
}

}  // namespace mlc::driver
