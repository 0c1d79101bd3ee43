#include "tools/driver/gate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/analysis/generated_inputs.h"
#include "lib/analysis/placement_rules.h"
#include "lib/runtime/guarded_model.h"
#include "lib/support/memory_use.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/model.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Clock = std::chrono::steady_clock;
using Outputs = std::map<std::string, Tensor>;

constexpr std::string_view kSpeed = "speed";
// One in this many cycles compiles without the cache, which yields enough compile times for a p99.
constexpr int64_t kCompileEvery = 20;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

GateCheck AtMost(std::string name, double value, double limit, std::string unit, std::string text) {
  return {std::move(name), value <= limit ? GateVerdict::kPass : GateVerdict::kFail,
          value,           limit,
          std::move(unit), std::move(text)};
}
GateCheck AtLeast(std::string name, double value, double limit, std::string unit,
                  std::string text) {
  GateCheck check = AtMost(std::move(name), value, limit, std::move(unit), std::move(text));
  check.verdict = value >= limit ? GateVerdict::kPass : GateVerdict::kFail;
  return check;
}
GateCheck NotApplicable(std::string_view name, std::string why) {
  return {.name = std::string(name), .text = std::move(why)};
}
GateCheck PassIf(bool passed, std::string name, std::string text) {
  return {.name = std::move(name),
          .verdict = passed ? GateVerdict::kPass : GateVerdict::kFail,
          .text = std::move(text)};
}

// Returns the check "memory growth". `limit` is the allowed growth per `per` cycles or predictions
// (`what`). A total growth of less than `noise` bytes over `counted` of them passes, because the
// allocator may cause it.
GateCheck GrowthCheck(const runtime::MemoryGrowth& growth, int64_t per, double limit,
                      std::string_view what, int64_t counted = 0, double noise = 0) {
  const std::optional<double> slope = growth.Slope();
  if (!slope)
    return NotApplicable("memory growth",
                         fmt::format("requires at least 20 {} after the warm-up", what));
  const double value = *slope * static_cast<double>(per);
  GateCheck check =
      AtMost("memory growth", value / 1e3, limit / 1e3, fmt::format("kB per {} {}", per, what),
             fmt::format("median slope between the minima of ten windows; maximum {:.1f} MB",
                         static_cast<double>(growth.high_water()) / 1e6));
  const double all = *slope * static_cast<double>(counted);
  if (check.verdict == GateVerdict::kFail && all < noise) {
    check.verdict = GateVerdict::kPass;
    check.text += fmt::format("; {:.0f} kB in total are attributed to the allocator", all / 1e3);
  }
  return check;
}

std::function<std::unique_ptr<runtime::LoadedModel>()> LoadOf(const GateSubject& subject,
                                                              runtime::Units units) {
  runtime::LoadOptions load = subject.load;
  load.units = units;
  return [runtime = subject.runtime, model = subject.loaded, load] {
    return runtime->Load(model.path, load);
  };
}

// A model with timeouts. The breaker stays closed, because the checks judge failures themselves.
std::unique_ptr<runtime::GuardedModel> Guarded(const GateSubject& subject,
                                               const GateOptions& options, runtime::Units units) {
  return std::make_unique<runtime::GuardedModel>(runtime::GuardOptions{
      .load = LoadOf(subject, units),
      .timeout = options.timeout,
      .load_timeout = options.load_timeout,
      .breaker = std::make_shared<runtime::CircuitBreaker>(
          runtime::BreakerOptions{.override = runtime::BreakerOptions::Override::kClosed}),
      .abandoned = std::make_shared<runtime::Abandoned>()});
}

// Measures consecutive predictions.
runtime::LatencySummary Measure(runtime::GuardedModel& model, const Outputs& inputs,
                                int64_t iterations) {
  runtime::LatencyHistogram histogram;
  const int64_t warmup = iterations / 10;
  for (int64_t i = 0; i < warmup + iterations; ++i) {
    const auto [in_ms, predict_ms, out_ms] = model.Run(inputs).timings;
    if (i >= warmup) histogram.Add(in_ms + predict_ms + out_ms);
  }
  return histogram.Summary();
}

// Returns the name of the first output that differs from `first`, or "" if none does. Without a
// budget the comparison is exact.
std::string Changed(const Outputs& outputs, const Outputs& first, const verify::Budget* budget) {
  for (const auto& [name, reference] : first) {
    const auto it = outputs.find(name);
    if (it == outputs.end()) return fmt::format("output \"{}\" is missing", name);
    if (!budget && reference.dtype() != DType::kString) {
      if (it->second.dims() != reference.dims() || it->second.hash() != reference.hash())
        return fmt::format("output \"{}\" is not bit-identical", name);
      continue;
    }
    const verify::Budget allowed = budget ? *budget : verify::Budget{};
    if (const verify::Comparison comparison = Compare(it->second, reference, allowed);
        !comparison.Within(allowed))
      return fmt::format("output \"{}\": {} ({})", name, Describe(comparison), Describe(allowed));
  }
  return "";
}

// Returns whether a tensor has float elements and none of them is finite.
bool IsNoNumbers(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype()) || tensor.size() == 0) return false;
  const std::vector<double> values = tensor.Doubles();
  return std::ranges::none_of(values, [](double v) { return std::isfinite(v); });
}

// Returns a failed or not applicable check if the outputs are meaningless (all NaN, or unable to
// show a deviation); nothing otherwise.
std::optional<GateCheck> SaysNothing(const std::string& name, const Outputs& outputs,
                                     const verify::Budget& budget) {
  bool told = false;
  for (const auto& [output, tensor] : outputs) {
    if (IsNoNumbers(tensor))
      return PassIf(false, name,
                    fmt::format("output \"{}\" contains only NaN or infinity", output));
    told = told || Compare(tensor, tensor, budget).Tells(budget);
  }
  if (told) return std::nullopt;
  return NotApplicable(name, "no output is conclusive for generated inputs");
}

std::string Shown(const runtime::Feature& feature) {
  return fmt::format("{} [{}]", Name(feature.dtype), fmt::join(feature.dims, ", "));
}
// Describes the differences between two schemas; "" if there are none.
std::string Difference(const runtime::Schema& found, const runtime::Schema& expected) {
  struct Part {
    const char* what;
    const std::vector<runtime::Feature>&found, &expected;
  };
  for (const Part& part : {Part{"input", found.inputs, expected.inputs},
                           Part{"output", found.outputs, expected.outputs},
                           Part{"state", found.states, expected.states}}) {
    for (const runtime::Feature& feature : part.expected) {
      const auto it = std::ranges::find(part.found, feature.name, &runtime::Feature::name);
      if (it == part.found.end())
        return fmt::format("the runtime has no {} \"{}\"", part.what, feature.name);
      // Core ML's descriptions of outputs may lack a shape.
      const bool as_stated = it->dims == feature.dims ||
                             (&part.found == &found.outputs &&
                              std::ranges::all_of(it->dims, [](int64_t dim) { return dim < 0; }));
      if (it->kind != feature.kind || it->dtype != feature.dtype || !as_stated)
        return fmt::format("{} \"{}\" is {}, but {} in the package", part.what, feature.name,
                           Shown(*it), Shown(feature));
    }
    if (part.found.size() != part.expected.size())
      return fmt::format("the runtime has {} {}s, but the package has {}", part.found.size(),
                         part.what, part.expected.size());
  }
  return "";
}

// Describes how the outputs violate `schema`; "" if they conform.
std::string Misfit(const Outputs& outputs, const runtime::Schema& schema) {
  for (const runtime::Feature& feature : schema.outputs) {
    const auto it = outputs.find(feature.name);
    if (it == outputs.end()) return fmt::format("output \"{}\" is missing", feature.name);
    const Tensor& tensor = it->second;
    const bool stated = !feature.dims.empty();  // optional for outputs
    const bool fits = tensor.dtype() == feature.dtype &&
                      (!stated || std::ranges::equal(tensor.dims(), feature.dims,
                                                     [](int64_t size, int64_t declared) {
                                                       return declared < 0 || size == declared;
                                                     }));
    if (!fits)
      return fmt::format("output \"{}\" is {} [{}], but is declared as {}", feature.name,
                         Name(tensor.dtype()), fmt::join(tensor.dims(), ", "), Shown(feature));
  }
  return "";
}

// Checks that the runtime's schema equals the package's, and that the outputs of a prediction
// conform to it.
GateCheck SchemaCheck(const GateSubject& subject, runtime::GuardedModel& model) {
  const runtime::Schema& schema = model.schema();
  std::string wrong = subject.is_reference ? "" : Difference(schema, subject.reference->schema());
  if (wrong.empty()) wrong = Misfit(model.Run(subject.inputs).outputs, schema);
  if (!wrong.empty()) return PassIf(false, "schema", std::move(wrong));
  return PassIf(true, "schema",
                fmt::format("{} inputs, {} outputs and {} states match the package",
                            schema.inputs.size(), schema.outputs.size(), schema.states.size()));
}

GateCheck TimeoutCheck(const GateSubject& subject, const GateOptions& options) {
  // The reference engine is deterministic; other runtimes may deviate within the precision's
  // budget.
  const verify::Budget* budget = subject.is_reference ? nullptr : &subject.budget;
  const std::string name = "timeout";
  const auto guarded = Guarded(subject, options, subject.load.units);
  const Outputs first = guarded->Run(subject.inputs).outputs;
  try {
    guarded->Run(subject.inputs, nullptr, std::chrono::nanoseconds(0));
    return PassIf(false, name, "a prediction with a timeout of 0 returned a result");
  } catch (const Error& error) {
    if (error.id() != "timeout")
      return PassIf(false, name,
                    fmt::format("ended with \"{}\": {}", error.id(), WithFlags(error.text())));
  }
  const std::string changed = Changed(guarded->Run(subject.inputs).outputs, first, budget);
  if (!changed.empty()) return PassIf(false, name, "the next prediction is wrong: " + changed);
  return PassIf(true, name, "a prediction with a timeout of 0 timed out, and the next is correct");
}

GateCheck ParityCheck(const GateSubject& subject, runtime::GuardedModel& model,
                      const GateOptions& options, Diagnostics& diagnostics) {
  const std::string name = "parity";
  if (subject.is_reference && options.source.empty())
    return NotApplicable(name,
                         "the reference engine is not compared with itself; pass a source model "
                         "with --source MODEL");
  std::string text;
  if (!options.source.empty()) {
    const VerifyResult result =
        Verify(options.source, subject.model,
               {.import = options.import, .function = options.function}, diagnostics);
    if (Judge(result.outputs) != verify::Verdict::kPassed) {
      text = "against the source: " + VerdictText(result.outputs);
      for (const verify::Compared& output : result.outputs)
        if (!output.within)
          text += fmt::format("; output \"{}\": {} (budget {})", output.name,
                              Describe(output.comparison), Describe(output.budget));
      return PassIf(false, name, text);
    }
    text = fmt::format("{} comparisons with the source", result.outputs.size());
  }
  if (subject.is_reference) return PassIf(true, name, text);
  const Outputs expected = subject.reference->Predict(subject.inputs, nullptr, nullptr);
  const Outputs found = model.Run(subject.inputs).outputs;
  for (const auto& [output, reference] : expected) {
    if (!found.contains(output))
      return PassIf(false, name, fmt::format("output \"{}\" is missing", output));
    const verify::Comparison comparison = Compare(found.at(output), reference, subject.budget);
    if (!comparison.Within(subject.budget))
      return PassIf(false, name,
                    fmt::format("output \"{}\" against the reference engine: {} (budget {})",
                                output, Describe(comparison), Describe(subject.budget)));
  }
  if (const std::optional<GateCheck> nothing = SaysNothing(name, expected, subject.budget))
    return *nothing;
  return PassIf(true, name,
                text + (text.empty() ? "" : ", and ") +
                    fmt::format("{} outputs with the reference engine", expected.size()));
}

void RefuseSource(const fs::path& model) {
  std::error_code ignored;
  if (!fs::exists(model, ignored)) return;
  const Frontend* frontend = nullptr;
  try {
    frontend = &FrontendOf(model);
  } catch (const Error&) {
    return;  // reported by the check that the model loads
  }
  if (frontend->IsSource())
    throw Error("usage", "{} is a source model ({})", model.string(), frontend->name)
        .Expected("a package or a compiled bundle")
        .Help("`mlc compile` makes a package");
}

Error NoBudget() { return Error("usage", "gate b requires --p99-ms MS"); }

int64_t BytesOf(const fs::path& path) {
  if (!fs::is_directory(path)) return static_cast<int64_t>(fs::file_size(path));
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  return bytes;
}

// Throws Error "usage" for a source model, and the errors of Import and of the runtime.
GateSubject MakeGateSubject(const fs::path& model, const GateOptions& options,
                            Diagnostics& diagnostics) {
  RefuseSource(model);
  const Format format = FrontendOf(model).format;
  // The other import options apply to --source.
  const ImportOptions sizes{.shapes = options.import.shapes, .dims = options.import.dims};
  GateSubject subject{.model = model, .bytes = BytesOf(model)};
  subject.is_reference = options.units == runtime::Units::kReference;
  subject.load.units = options.units;
  subject.runtime = MakeRuntime(options.units, {.import = sizes});
  auto scratch = std::make_shared<TemporaryFolder>();
  std::shared_ptr<cache::FolderCache> cache = OpenCache(scratch->path);
  if (format != Format::kBundle)
    subject.compiled = [scratch, cache, runtime = subject.runtime, model, units = options.units] {
      return CompiledFor(*runtime, model, units, cache.get());
    };
  subject.loaded = subject.runtime->loads_packages()
                       ? CompiledModel{.path = model}
                       : runtime::Worker().Run(
                             [runtime = subject.runtime, model, units = options.units] {
                               return CompiledFor(*runtime, model, units);
                             },
                             options.load_timeout);
  Model read(model,
             {.import = sizes,
              .function = options.function,
              .units = runtime::Units::kReference,
              .timeout = options.timeout},
             diagnostics);
  subject.function = read.function().name;
  if (options.function) subject.load.function = subject.function;
  subject.inputs = analysis::GenerateInputs(read.function(), {}, {}).tensors;
  subject.budget = verify::ParseBudgets(ComputesInFp16(*read.program()) ? "fp16" : "fp32").all;
  subject.reference = read.LoaderOf(read.function())();
  const analysis::Placement placement = PlacementOf(
      read.function(),
      options.units == runtime::Units::kGpu ? analysis::Unit::kGpu : analysis::Unit::kNeuralEngine,
      analysis::DefaultChip(), analysis::SizesToExamine(read.function()).front());
  for (const analysis::PlacementFinding& finding : placement.findings)
    if (finding.op && finding.rule->severity == analysis::Severity::kCannotRun &&
        !finding.op->results.empty())
      subject.refused.emplace(finding.op->result()->name, finding.rule->id);
  return subject;
}

}  // namespace

std::string_view Name(GateVerdict verdict) {
  constexpr std::string_view kNames[] = {"pass", "fail", "not-applicable"};
  return kNames[static_cast<size_t>(verdict)];
}

GateVerdict Together(const std::vector<GateCheck>& checks) {
  GateVerdict all = checks.empty() ? GateVerdict::kNotApplicable : GateVerdict::kPass;
  for (const GateCheck& check : checks) {
    if (check.verdict == GateVerdict::kFail) return GateVerdict::kFail;
    if (check.verdict == GateVerdict::kNotApplicable) all = GateVerdict::kNotApplicable;
  }
  return all;
}

GateVerdict Together(char gate, const std::vector<GateResult>& results) {
  std::vector<GateCheck> checks;
  std::optional<GateCheck> speed;
  for (const GateResult& result : results)
    for (const GateCheck& check : result.checks) {
      if (gate != 'c' || check.name != kSpeed)
        checks.push_back(check);
      else if (!speed || check.verdict < speed->verdict)
        speed = check;
    }
  if (speed) checks.push_back(*speed);
  return Together(checks);
}

std::vector<GateCheck> GateA(const GateSubject& subject, const GateOptions& options) {
  const auto resident = options.resident ? options.resident : ResidentBytes;
  const auto now = options.now ? options.now : Clock::now;
  const bool compiles = subject.compiled != nullptr;
  const int64_t warmup = std::max<int64_t>(options.cycles / 10, 10);
  const auto scratch = std::make_shared<const TemporaryFolder>();
  const fs::path bundle = scratch->path / "model.mlmodelc";
  runtime::LatencyHistogram compiling;
  runtime::MemoryGrowth growth;
  int64_t hits = 0, cycle = 0;
  std::string failure;
  runtime::Worker worker;
  const auto in_time = [&](auto task) { return worker.Run(std::move(task), options.load_timeout); };
  try {
    for (; cycle < options.cycles; ++cycle) {
      if (compiles && cycle % kCompileEvery == 0) {
        fs::remove_all(bundle);
        const Clock::time_point begin = now();
        in_time([runtime = subject.runtime, model = subject.model, scratch, bundle] {
          runtime->Compile(model, bundle);
        });
        compiling.Add(1e3 * Seconds(now() - begin));
      }
      const CompiledModel found = compiles ? in_time(subject.compiled) : subject.loaded;
      hits += !found.made;
      in_time([runtime = subject.runtime, found, load = subject.load] {
        runtime->Load(found.path, load);
      });
      if (cycle >= warmup) growth.Add(cycle, resident());
    }
  } catch (const Error& error) {
    failure = fmt::format("cycle {}: {}", cycle + 1, WithFlags(error.text()));
  }
  std::vector<GateCheck> checks;
  checks.push_back(PassIf(failure.empty() && cycle > 0, "cycles",
                          failure.empty() ? fmt::format("{} of {} {}loaded", cycle, options.cycles,
                                                        compiles ? "compiled and " : "")
                                          : failure));
  checks.back().count = cycle;
  checks.push_back(GrowthCheck(growth, 1000, kGrowthPer1000Cycles, "cycles"));
  if (!compiles) {
    for (const char* name : {"cache hits", "compile p99"})
      checks.push_back(
          NotApplicable(name, "the model is a compiled bundle; pass its package instead"));
    return checks;
  }
  if (cycle < kCacheCycles)
    checks.push_back(
        NotApplicable("cache hits", fmt::format("requires at least {} cycles", kCacheCycles)));
  else
    checks.push_back(AtLeast("cache hits",
                             100 * static_cast<double>(hits) / static_cast<double>(cycle),
                             kCacheHitsPercent, "%", fmt::format("{} of {}", hits, cycle)));
  const auto limit = std::ranges::find_if(
      kCompileLimits, [&](const CompileLimit& l) { return subject.bytes <= l.bytes; });
  const runtime::LatencySummary compiled = compiling.Summary();
  if (compiled.count == 0)
    checks.push_back(NotApplicable("compile p99", "nothing was compiled"));
  else if (limit == std::end(kCompileLimits))
    checks.push_back(
        NotApplicable("compile p99", fmt::format("no limit is set for packages of {:.0f} MB",
                                                 static_cast<double>(subject.bytes) / 1e6)));
  else
    checks.push_back(AtMost("compile p99", compiled.p99 / 1e3, limit->seconds, "s",
                            fmt::format("of {} times, {:.3g} MB", compiled.count,
                                        static_cast<double>(subject.bytes) / 1e6)));
  return checks;
}

std::vector<GateCheck> GateB(const GateSubject& subject, const GateOptions& options,
                             Diagnostics& diagnostics) {
  if (!options.p99_ms) throw NoBudget();
  std::vector<GateCheck> checks;
  const auto add = [&](const char* name, const std::function<GateCheck()>& make) {
    try {
      checks.push_back(make());
    } catch (const Error& error) {
      checks.push_back(PassIf(false, name, WithFlags(error.text())));
    }
  };
  std::unique_ptr<runtime::GuardedModel> model;
  add("schema", [&] {
    model = Guarded(subject, options, subject.load.units);
    return SchemaCheck(subject, *model);
  });
  if (!model) return checks;
  add("timeout", [&] { return TimeoutCheck(subject, options); });
  add("p99", [&] {
    const runtime::LatencySummary measured = Measure(*model, subject.inputs, options.iterations);
    GateCheck check =
        AtMost("p99", measured.p99, *options.p99_ms, "ms",
               fmt::format("of {} predictions, p50 {:.3g} ms", measured.count, measured.p50));
    check.count = measured.count;
    return check;
  });
  add("parity", [&] { return ParityCheck(subject, *model, options, diagnostics); });
  return checks;
}

std::vector<GateCheck> GateC(const GateSubject& subject, const GateOptions& options) {
  if (subject.is_reference || subject.load.units == runtime::Units::kCpu) {
    const std::string why =
        subject.is_reference
            ? "the reference engine has no compute units; this requires Core ML, on a Mac"
            : "the CPU is not compared with itself; pass other units";
    return {NotApplicable(kSpeed, why), NotApplicable("coverage", why)};
  }
  std::vector<GateCheck> checks;
  try {
    const auto cpu = Guarded(subject, options, runtime::Units::kCpu),
               asked = Guarded(subject, options, options.units);
    const double of_cpu = Measure(*cpu, subject.inputs, options.iterations).p99;
    const double of_asked = Measure(*asked, subject.inputs, options.iterations).p99;
    if (of_cpu > 0)
      checks.push_back(
          AtMost(std::string(kSpeed), of_asked / of_cpu, kSpeedOfCpu, "x the CPU's p99",
                 fmt::format("p99 {:.3g} ms, on the CPU {:.3g} ms", of_asked, of_cpu)));
    else
      checks.push_back(NotApplicable(kSpeed, "the runtime reports no times"));
    checks.back().count = options.iterations;
    std::string why;
    const std::vector<runtime::OperationPlacement> placements = asked->Placements(&why);
    int64_t known = 0, on_asked = 0;
    std::map<std::string, int64_t> elsewhere;  // number of operations by rule
    for (const runtime::OperationPlacement& placement : placements) {
      const runtime::Device device = placement.preferred;
      known += device != runtime::Device::kUnknown;
      const bool covered =
          device != runtime::Device::kCpu && runtime::Allows(options.units, device);
      on_asked += covered;
      if (covered) continue;
      const auto rule = subject.refused.find(placement.name);
      ++elsewhere[rule != subject.refused.end() ? rule->second : "no known rule"];
    }
    std::string rules;
    for (const auto& [rule, count] : elsewhere)
      rules += fmt::format("{}{} {}", rules.empty() ? "; elsewhere by rule of mlc explain: " : ", ",
                           rule, count);
    if (known == 0)
      checks.push_back(
          NotApplicable("coverage", why.empty() ? "the runtime reports no placements" : why));
    else
      // Operations with an unknown device do not count as covered.
      checks.push_back(AtLeast(
          "coverage", 100 * static_cast<double>(on_asked) / static_cast<double>(placements.size()),
          options.coverage_percent, "% of the operations",
          fmt::format("{} of {} on {}{}", on_asked, placements.size(), Name(options.units),
                      rules)));
  } catch (const Error& error) {
    checks.push_back(PassIf(false, "runs", WithFlags(error.text())));
  }
  return checks;
}

std::vector<GateCheck> GateD(const GateSubject& subject, const GateOptions& options) {
  const auto resident = options.resident ? options.resident : ResidentBytes;
  const auto now = options.now ? options.now : Clock::now;
  const verify::Budget* budget = subject.is_reference ? nullptr : &subject.budget;
  runtime::MemoryGrowth growth;
  Outputs first;
  int64_t predictions = 0, succeeded = 0, changed = 0;
  std::string change, failure, hang;
  try {
    const auto guarded = Guarded(subject, options, subject.load.units);
    const Clock::time_point begin = now();
    for (Clock::duration since{}; since < options.duration && hang.empty(); since = now() - begin) {
      ++predictions;
      try {
        Outputs outputs = guarded->Run(subject.inputs).outputs;
        ++succeeded;
        if (first.empty()) first = outputs;
        const std::string what = Changed(outputs, first, budget);
        if (!what.empty() && ++changed == 1)
          change = fmt::format("prediction {}: {}", predictions, what);
      } catch (const Error& error) {
        const std::string what =
            fmt::format("prediction {}: {}", predictions, WithFlags(error.text()));
        if (failure.empty()) failure = "; " + what;
        if (error.id() == "timeout") hang = what;
      }
      if (since * 10 >= options.duration) growth.Add(predictions, resident());
    }
  } catch (const Error& error) {
    return {PassIf(false, "runs", WithFlags(error.text()))};
  }
  std::vector<GateCheck> checks;
  checks.push_back(GrowthCheck(growth, 100, kGrowthPer100Predictions, "predictions", predictions,
                               kGrowthOfAllocator));
  if (predictions == 0) {
    checks.push_back(NotApplicable("success rate", "no prediction was run"));
    return checks;
  }
  checks.push_back(AtLeast(
      "success rate", 100 * static_cast<double>(succeeded) / static_cast<double>(predictions),
      kSoakSuccessPercent, "%", fmt::format("{} of {}{}", succeeded, predictions, failure)));
  checks.back().count = predictions;
  checks.push_back(PassIf(
      hang.empty(), "hangs",
      hang.empty() ? fmt::format("no prediction took more than {} s", Seconds(options.timeout))
                   : hang));
  if (succeeded < 2)
    checks.push_back(NotApplicable("numbers", "fewer than two predictions to compare"));
  else if (changed > 0)
    checks.push_back(
        PassIf(false, "numbers",
               fmt::format("{} of {} differ from the first; {}", changed, succeeded, change)));
  else if (const auto nothing = SaysNothing("numbers", first, budget ? *budget : verify::Budget{}))
    checks.push_back(*nothing);
  else
    checks.push_back(PassIf(true, "numbers",
                            fmt::format("{} predictions, each equal to the first{}", succeeded,
                                        budget ? " within the budget" : ", bit by bit")));
  return checks;
}

std::vector<GateResult> RunGate(char gate, const std::vector<fs::path>& models,
                                const GateOptions& options, Diagnostics& diagnostics) {
  if (gate < 'a' || gate > 'd')
    throw Error("usage", "unknown gate \"{}\"", gate).Expected("a, b, c or d");
  if (gate == 'b' && !options.p99_ms) throw NoBudget();
  for (const fs::path& model : models) RefuseSource(model);
  const std::string runtime = MakeRuntime(options.units, {})->capabilities().runtime;
  std::vector<GateResult> results;
  for (const fs::path& model : models) {
    GateResult result{.model = model, .runtime = runtime};
    try {
      const GateSubject subject = MakeGateSubject(model, options, diagnostics);
      result.function = subject.function;
      result.checks = gate == 'a'   ? GateA(subject, options)
                      : gate == 'b' ? GateB(subject, options, diagnostics)
                      : gate == 'c' ? GateC(subject, options)
                                    : GateD(subject, options);
    } catch (const Error& error) {
      const std::string place = error.location().ToString();
      result.checks = {
          PassIf(false, "loads",
                 WithFlags(error.text()) + (place.empty() ? "" : fmt::format(" ({})", place)))};
    } catch (const fs::filesystem_error& error) {  // e.g. a folder without read permission
      result.checks = {PassIf(false, "loads", WithFlags(error.what()))};
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace mlc::driver
