#include "lib/precision/measure.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/analysis/fp16_share.h"
#include "lib/precision/minimal_fp32_search.h"
#include "lib/precision/rounding.h"

namespace mlc::precision {

namespace {

// Below the range of fp16, because other inputs give larger numbers, but above the bounds of masks
// (safe-masks).
constexpr double kLargest = 0.75 * 65504;

constexpr std::string_view kHolds = "the maximum of fp16 is 65504";

bool IsLarge(const ActivationStats& seen) { return ExtrapolatedMagnitude(seen) > kLargest; }

// Keeps operations in fp32 that overflow for images in another common range, if these are a small
// part of the work; otherwise returns a sentence about them.
std::string KeepOtherRange(PrecisionTrials& trials, const MeasureInputs& inputs) {
  Jobs jobs = trials.JobsOf(inputs.other_range);
  if (jobs.empty()) return "";
  PrecisionTrials::StatsByName seen;
  try {
    trials.RunReferences(jobs, seen);
  } catch (const Error&) {
    return "";
  }
  const Fp32Operations before = trials.context.measured;
  trials.Mark(seen, IsLarge, passes::Fp32Reason::kOverflow,
              fmt::format("images with values in {}; {}", inputs.other_range_name, kHolds));
  double more = 0, all = 0, most = 0;
  for (const Job& job : trials.jobs)
    for (const auto& [op, work] : analysis::WorkOfOperations(*job.function)) {
      all += work;
      if (op->results.empty()) continue;  // writing a state
      const std::string& name = NameOf(*op);
      if (!before.contains(name) && trials.context.measured.contains(name)) more += work;
    }
  if (more <= kRoundingShare * all) return "";
  for (const auto& [name, value] : seen) most = std::max(most, value.largest);
  trials.context.measured = before;
  return fmt::format(
      "for images with values in {}, values reach {:.3g}, but {}; {:.0f} % of the work would "
      "have to stay in fp32",
      inputs.other_range_name, most, kHolds, 100 * more / all);
}

Measurement Measure(const Program& program, passes::PassContext& context,
                    const MeasureOptions& options) {
  Measurement measurement;
  const MeasureInputs& inputs = options.inputs;
  measurement.generated = inputs.generated;
  measurement.inputs = inputs.description;
  auto not_measured = [&](std::string why) {
    measurement.not_measured = std::move(why);
    return measurement;
  };
  if (std::ranges::any_of(program.functions,
                          [](const auto& function) { return verify::IsRandom(*function); }))
    return not_measured("the results are random");
  PrecisionTrials trials(program, context, options);
  trials.look_at_values = !options.least && inputs.too_large.empty();
  try {
    trials.jobs = trials.JobsOf(inputs.steps);
    trials.RunReferences(trials.jobs, trials.seen);
    trials.Mark(trials.seen, IsLarge, passes::Fp32Reason::kOverflow, kHolds);
    for (const auto& [name, value] : trials.seen)
      if (value.finite) context.reached[name] = value.largest;
    measurement.ranges = !trials.jobs.empty();
    if (measurement.ranges) measurement.other_range = KeepOtherRange(trials, inputs);
    if (!inputs.too_large.empty()) return not_measured(inputs.too_large);
    if (options.least) trials.CompareWithSource(trials.jobs);
    Candidate candidate = options.least ? FindMinimalFp32(trials, trials.JobsOf(inputs.more))
                                        : SearchDefault(trials, trials.JobsOf(inputs.more),
                                                        inputs.affordable, measurement);
    if (candidate.worst().output.empty())
      measurement.not_measured =
          fmt::format("each output {}", fmt::join(candidate.figures.untold(), ", or "));
    const bool fitted = candidate.fits();
    // Operations named by the user are not a reason to keep others in fp32.
    trials.overruled = !context.fp16_ops.empty();
    if (trials.overruled) candidate = trials.Try(context.measured, trials.jobs);
    measurement.chosen = candidate.worst();
    measurement.chosen.fits = candidate.fits();
    measurement.broken = candidate.figures.broken();
    measurement.runs = trials.runs;
    measurement.curve = std::move(trials.tried);
    if (options.least && !measurement.curve.empty())
      measurement.plain = measurement.curve.front().worst;
    if (trials.overruled) measurement.beyond = candidate.figures.Beyond();
    if (candidate.fits()) return measurement;
    const bool named = trials.overruled && fitted;
    if (named || options.least)
      context.diagnostics.Warn(
          Error("check-failed",
                trials.Evidence(candidate) + (named ? ", because of option 'fp16-ops'"
                                                    : ", even with more operations in fp32"))
              .Help(named
                        ? "mlc verify shows the errors; without option 'fp16-ops' the budget is met"
                        : "mlc verify shows the errors; option 'precision' fp32 avoids them"));
  } catch (const Error& error) {
    if (!measurement.generated) throw;
    context.measured.clear();
    context.reached.clear();
    if (inputs.too_large.empty())
      return not_measured(fmt::format("the program cannot be run: {}", error.text()));
    return not_measured(inputs.too_large);
  }
  return measurement;
}

// Indexed by Kind.
constexpr struct {
  std::string_view word, phrase;
} kKinds[] = {{"error", "an error"},
              {"RMSE", "an RMSE"},
              {"unequal", "a share of unequal elements"},
              {"elements", "a share of elements outside atol and rtol"}};

}  // namespace

std::string_view Name(Measurement::Figure::Kind kind) {
  return kKinds[static_cast<size_t>(kind)].phrase;
}
std::string_view Word(Measurement::Figure::Kind kind) {
  return kKinds[static_cast<size_t>(kind)].word;
}

Measurement MeasureFp16(const Program& program, passes::PassContext& context,
                        const MeasureOptions& options) {
  Measurement measurement = Measure(program, context, options);
  context.judged = measurement.not_measured.empty();
  // Keeps the Pareto front: the points that no point with at least as much fp16 work improves on.
  auto badness = [](const Measurement::Point& point) { return point.worst.Part(); };
  std::vector<Measurement::Point> tried = std::move(measurement.curve);
  std::ranges::stable_sort(tried, [&](const auto& a, const auto& b) {
    return std::pair(-a.fp16_share, badness(a)) < std::pair(-b.fp16_share, badness(b));
  });
  measurement.curve.clear();
  for (Measurement::Point& point : tried)
    if (measurement.curve.empty() || badness(point) < badness(measurement.curve.back()))
      measurement.curve.push_back(std::move(point));
  std::ranges::reverse(measurement.curve);
  return measurement;
}

}  // namespace mlc::precision
