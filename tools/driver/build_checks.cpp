#include "tools/driver/build_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/engine/engine.h"
#include "lib/ir/input_conversion.h"
#include "lib/support/edit_distance.h"
#include "lib/support/memory_use.h"
#include "lib/verify/fp16_floor.h"
#include "tools/driver/errors.h"
#include "tools/driver/explain.h"
#include "tools/driver/input_files.h"
#include "tools/driver/model.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// Returns the rows [first, first + count) of a sample array, in the shape of the model's input.
// Images keep theirs, which tells the order of channels and rows.
Tensor Batch(const Tensor& samples, int64_t first, int64_t count, const Port& port,
             const Shape& shape) {
  Tensor rows = samples.Rows(first, first + count);
  return port.feature == Port::Feature::kMultiArray && IsStatic(shape) &&
                 Product(shape).constant() == rows.size()
             ? rows.Reshaped(StaticDims(shape))
             : rows;
}

// Runs a program on inputs by MIL name.
using Predictor =
    std::function<std::map<std::string, Tensor>(const std::map<std::string, Tensor>& inputs)>;

// Returns the program's outputs for all samples, concatenated along their first dimension; string
// outputs are omitted.
std::map<std::string, Tensor> RunSamples(const Program& program,
                                         std::map<std::string, Tensor> samples,
                                         const Predictor& predict) {
  const Function& main = *program.main();
  std::vector<const Value*> values = InputValues(main);
  int64_t runs = -1;
  std::vector<int64_t> batch(main.inputs.size(), 1);
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    auto it = samples.find(main.inputs[i].source_name);
    if (it == samples.end())
      throw Error("bad-recipe", "check.inputs lacks \"{}\"", main.inputs[i].source_name);
    // Inputs are converted before batching, so that errors state the position in the file.
    const Port& port = main.inputs[i];
    if (port.feature == Port::Feature::kMultiArray && port.source_dtype != DType::kNone)
      it->second = ConvertInput(it->second, port.source_dtype,
                                {"bad-recipe", fmt::format("check.inputs.{}", port.source_name)});
    const Shape& shape = values[i]->type.shape;
    if (!shape.empty() && shape[0].is_constant())
      batch[i] = std::max<int64_t>(shape[0].constant(), 1);
    if (it->second.rank() == 0 || it->second.dims()[0] % batch[i] != 0)
      throw Error("bad-recipe",
                  "check.inputs.{}: the number of samples, {}, is not a positive multiple of the "
                  "batch size {}",
                  main.inputs[i].source_name, it->second.rank() ? it->second.dims()[0] : 0,
                  batch[i]);
    if (it->second.size() == 0)
      throw Error("bad-recipe", "check.inputs.{}: there are no samples",
                  main.inputs[i].source_name);
    int64_t own = it->second.dims()[0] / batch[i];
    if (runs >= 0 && own != runs)
      throw Error("bad-recipe", "check.inputs have different numbers of runs");
    runs = own;
  }
  std::vector<std::vector<std::byte>> bytes(main.outputs.size());
  std::vector<Tensor> last(main.outputs.size());
  for (int64_t run = 0; run < runs; ++run) {
    std::map<std::string, Tensor> given;
    for (size_t i = 0; i < main.inputs.size(); ++i)
      given[main.inputs[i].source_name] =
          Batch(samples.at(main.inputs[i].source_name), run * batch[i], batch[i], main.inputs[i],
                values[i]->type.shape);
    std::map<std::string, Tensor> results = predict(MakeInputs(main, given));
    for (size_t k = 0; k < main.outputs.size(); ++k) {
      Tensor result = ToSourceType(results.at(main.body.outputs()[k]->name), main.outputs[k]);
      if (result.dtype() == DType::kString) continue;
      if (run > 0 && result.dims() != last[k].dims())
        throw Error("bad-recipe",
                    "check: the shape of output \"{}\" differs in run {}: [{}] instead of [{}]",
                    main.outputs[k].source_name, run, fmt::join(result.dims(), ", "),
                    fmt::join(last[k].dims(), ", "));
      last[k] = std::move(result);
      Pin<std::byte> data = last[k].bytes();
      bytes[k].insert(bytes[k].end(), data.begin(), data.end());
    }
  }
  std::map<std::string, Tensor> outputs;
  for (size_t k = 0; k < main.outputs.size(); ++k) {
    if (!last[k]) continue;
    Dims dims = last[k].rank() ? last[k].dims() : Dims{1};
    dims[0] *= runs;
    outputs[main.outputs[k].source_name] =
        Tensor::Owned(last[k].dtype(), dims, std::move(bytes[k]));
  }
  return outputs;
}

double Accuracy(const Tensor& scores, const Tensor& labels) {
  if (scores.rank() != 2 || labels.size() != scores.dims()[0] || labels.size() == 0 ||
      !IsInteger(labels.dtype()))
    throw Error(
        "bad-recipe",
        "check.accuracy: the output must be [samples, classes], with one integer label per sample");
  int64_t right = 0, classes = scores.dims()[1];
  for (int64_t row = 0; row < labels.size(); ++row) {
    if (labels.Int(row) < 0 || labels.Int(row) >= classes)
      throw Error("bad-recipe", "check.accuracy: label {} is {}, of {} classes", row,
                  labels.Int(row), classes);
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (scores.Double(row * classes + c) > scores.Double(row * classes + best)) best = c;
    right += best == labels.Int(row);
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

// `name` is empty if the recipe contains the budget itself.
verify::Budgets BudgetsOf(const Recipe& recipe, const Recipe::Variant& variant,
                          const std::string& precision) {
  if (variant.budget.empty()) return verify::ParseBudgets(precision == "fp32" ? "fp32" : "fp16");
  if (!variant.budget.starts_with('{')) return verify::ParseBudgets(variant.budget);
  verify::Budgets budgets = verify::BudgetsFromJson(variant.budget, recipe.file.string());
  budgets.name.clear();
  for (const auto& [output, unused] : budgets.outputs)
    if (!recipe.reference.contains(output))
      throw Error("bad-recipe", "budget: output \"{}\" has no reference", output);
  return budgets;
}

// Adds the floors that the source has on these samples.
verify::Budgets WithFloors(const verify::Budgets& budgets, const fs::path& source,
                           const CompileOptions& options,
                           const std::map<std::string, Tensor>& samples) {
  ImportOptions import = options.import;
  import.target = options.target;
  Diagnostics said;  // from the compilation
  Program program = Import(source, import, said);
  auto run = [&](const Program& one) {
    engine::Engine engine(*one.main(), {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
    std::map<std::string, Tensor> outputs =
        RunSamples(one, samples, [&](const auto& inputs) { return engine.Run(inputs); });
    return std::vector<verify::StepResults>{
        {verify::NamedTensors(outputs.begin(), outputs.end()), {}}};
  };
  return Fp16Budgets(budgets, run(program), run(verify::RoundConstants(program)));
}

// A package, and the record of its build, that limits apply to.
struct Measured {
  const BuildRecord& built;
  const fs::path& package;
};
struct LimitRow {
  std::string_view name;
  bool least;  // a lower limit
  double (*figure)(const Measured& of);
};
const std::array<LimitRow, 5> kLimits{{
    // name, lower limit, figure
    {"package_bytes", false,
     [](const Measured& of) { return static_cast<double>(of.built.package_bytes); }},
    {"operations", false,
     [](const Measured& of) { return static_cast<double>(of.built.operations); }},
    {"fp32_share", false, [](const Measured& of) { return 1 - of.built.fp16_share; }},
    {"ane_coverage_pct", true,
     [](const Measured& of) {
       Diagnostics said;
       return 100 * Explain(of.package, {}, said).lowest_share();
     }},
    {"peak_memory_bytes", false,
     [](const Measured&) { return static_cast<double>(PeakMemoryBytes()); }},
}};

void CheckLimits(const Recipe::Variant& variant, const Measured& of,
                 std::vector<BuildCheck>& checks) {
  constexpr double kRounding = 1e-9;
  for (const auto& [what, limit] : variant.limits) {
    const LimitRow& row = *std::ranges::find(kLimits, what, &LimitRow::name);
    const double found = row.figure(of);
    checks.push_back({.kind = BuildCheck::Kind::kLimit,
                      .what = what,
                      .ok = row.least ? found >= limit - kRounding : found <= limit + kRounding,
                      .found = found,
                      .limit = limit,
                      .least = row.least});
  }
}

BuildCheck CheckReference(const std::string& output, const Tensor& value, const Tensor& given,
                          const verify::Budgets& budgets, bool* discriminating) {
  Tensor reference = WithBfloat16(given, value.dtype());
  const verify::Budget& budget = budgets.of(output);
  BuildCheck check{.kind = BuildCheck::Kind::kReference, .what = output};
  const verify::Comparison c = Compare(value, reference, budget);
  check.max_error = c.max_error;
  check.rmse = c.rmse;
  check.figures = Describe(c);
  *discriminating = c.discriminating;
  check.budget = budgets.name.empty() ? Describe(budget) : budgets.name;
  if (std::string floor = verify::DescribeFloor(budget, c); !floor.empty())
    check.budget += ", " + floor;
  if (!c.discriminating) check.note = "not discriminating: the reference is constant";
  if (std::optional<verify::HiddenSlice> hidden = verify::FindHidden(value, reference);
      hidden && c.mismatch.empty() && !budget.per_axis && !budget.elementwise())
    check.note = WithFlags(Describe(*hidden));
  check.ok = c.Within(budget) && c.Tells(budget);
  return check;
}

}  // namespace

CheckFiles ReadCheckFiles(const Recipe& recipe) {
  CheckFiles files;
  std::vector<Error> errors;
  auto read = [&](const std::string& file, std::string_view where) {
    try {
      return ReadSampleArray(recipe.folder / file);
    } catch (const Error& error) {
      errors.push_back(Error(error).Note("recipe \"{}\", {}", recipe.file.string(), where));
      return Tensor();
    }
  };
  for (const auto& [input, file] : recipe.inputs)
    files.inputs[input] = read(file, "check.inputs." + input);
  for (const auto& [output, file] : recipe.reference)
    files.reference[output] = read(file, "check.reference." + output);
  if (recipe.accuracy) files.labels = read(recipe.accuracy->labels, "check.accuracy.labels");
  if (!errors.empty()) throw Errors(std::move(errors));
  return files;
}

std::map<std::string, Tensor> FirstInputs(const Function& function,
                                          const std::map<std::string, Tensor>& samples) {
  std::map<std::string, Tensor> inputs;
  const std::vector<const Value*> values = InputValues(function);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const std::string& name = function.inputs[i].source_name;
    const auto given = samples.find(name);
    if (given == samples.end()) throw Error("bad-recipe", "check.inputs lacks \"{}\"", name);
    const Shape& shape = values[i]->type.shape;
    const int64_t batch = !shape.empty() && shape[0].is_constant() ? shape[0].constant() : 1;
    inputs[name] = Batch(given->second, 0, batch, function.inputs[i], shape);
  }
  return inputs;
}

std::vector<BuildCheck> CheckPackage(const Recipe& recipe, const Recipe::Variant& variant,
                                     const CheckFiles& files, const fs::path& package,
                                     const CompileOptions& options, const BuildRecord& built,
                                     runtime::Units units) {
  std::vector<BuildCheck> checks;
  const std::map<std::string, Tensor>& samples = files.inputs;
  Diagnostics said;  // nothing that the compilation did not say
  ModelOptions how;
  how.units = units;
  Model model(package, how, said);
  const Program& program = *model.program();
  std::vector<std::string> inputs;
  for (const Port& port : program.main()->inputs) inputs.push_back(port.source_name);
  for (const auto& [name, given] : samples)
    if (std::ranges::find(inputs, name) == inputs.end() && !IsAbsent(*program.main(), name, given))
      throw Error("bad-recipe", "check.inputs: the model has no input \"{}\"{}", name,
                  DidYouMean(inputs, name))
          .Expected("{}", fmt::join(inputs, ", "));
  const std::unique_ptr<runtime::GuardedModel> loaded = model.Load();
  std::map<std::string, Tensor> outputs =
      RunSamples(program, samples, [&](const auto& given) { return loaded->Run(given).outputs; });
  auto output = [&](const std::string& wanted) -> const Tensor& {
    auto it = outputs.find(wanted);
    if (it == outputs.end())
      throw Error("bad-recipe", "the model has no numeric output \"{}\"", wanted);
    return it->second;
  };
  CheckLimits(variant, {built, package}, checks);
  verify::Budgets budgets = BudgetsOf(recipe, variant, built.precision);
  // The floor takes two more runs, so it is computed only if the fp16 budget alone is exceeded.
  // They are those of the source, which need not be where a package is only tested.
  bool floors = variant.budget.empty() && built.precision == "fp16" &&
                fs::exists(recipe.folder / recipe.source);
  for (const auto& [wanted, given] : files.reference) {
    const Tensor& value = output(wanted);
    bool discriminating = false;
    BuildCheck check = CheckReference(wanted, value, given, budgets, &discriminating);
    if (!check.ok && discriminating && std::exchange(floors, false))
      budgets = WithFloors(budgets, recipe.folder / recipe.source, options, samples);
    checks.push_back(check.ok ? std::move(check)
                              : CheckReference(wanted, value, given, budgets, &discriminating));
  }
  if (recipe.accuracy) {
    BuildCheck check{.kind = BuildCheck::Kind::kAccuracy, .what = recipe.accuracy->output};
    check.limit = recipe.accuracy->expected;
    check.found = Accuracy(
        output(check.what),
        ConvertInput(files.labels, DType::kInt64, {"bad-recipe", "check.accuracy.labels"}));
    check.ok = std::fabs(check.found - check.limit) <= recipe.accuracy->tolerance + 1e-12;
    checks.push_back(std::move(check));
  }
  return checks;
}

BuildRecord CheckLatency(const Recipe::Variant& variant, const CheckFiles& files,
                         const fs::path& package, const BuildRecord& built, LatencyMeter& meter) {
  const double most = *variant.latency_increase_pct / 100;
  std::optional<LatencyBaseline> baseline;
  if (!meter.records()) baseline = meter.Read(variant.name);
  Diagnostics said;
  const std::shared_ptr<const Program> program =
      std::make_shared<const Program>(Import(package, {}, said));
  const double limit_ms = baseline ? baseline->latency.median_ms * (1 + most) : 0;
  // A baseline must be more exact than what it is for.
  const auto spread = [](const Latency& latency) {
    return (latency.high_ms - latency.low_ms) / latency.median_ms;
  };
  const auto clear = [&](const Latency& latency) {
    return baseline ? Judge(latency, limit_ms) != LatencyVerdict::kUnclear
                    : spread(latency) <= most;
  };
  const Latency now = meter.Measure(package, FirstInputs(*program->main(), files.inputs), clear);
  BuildRecord facts{.latency_ms = now.median_ms,
                    .machine = fmt::format("{}, {}", meter.machine().units, meter.machine().chip)};
  BuildCheck& check = facts.checks.emplace_back(BuildCheck{.kind = BuildCheck::Kind::kLimit,
                                                           .what = "latency_increase_pct",
                                                           .ok = true,
                                                           .found = NAN,
                                                           .limit = *variant.latency_increase_pct,
                                                           .judged = false});
  const std::string times =
      fmt::format("median {:.3g} ms, {:.3g} to {:.3g} ms", now.median_ms, now.low_ms, now.high_ms);
  if (!clear(now)) {
    check.figures = fmt::format("too noisy: {}{}", times,
                                baseline ? fmt::format(", limit {:.3g} ms", limit_ms) : "");
    check.note = "the rounds of the measurement disagree; build again when the machine is idle";
    return facts;
  }
  if (!baseline) {
    meter.Write(variant.name, now, built.content_hash);
    check.figures = fmt::format(
        "{}: {}", meter.records() ? "baseline recorded" : "no baseline, recorded", times);
    check.note = Describe(meter.machine());
    return facts;
  }
  check.judged = true;
  check.ok = Judge(now, limit_ms) == LatencyVerdict::kWithin;
  // Rounded to hundredths: more digits would be noise.
  check.found = std::round(1e4 * (now.median_ms / baseline->latency.median_ms - 1)) / 100;
  check.figures = fmt::format("{}, baseline {:.3g} ms", times, baseline->latency.median_ms);
  return facts;
}

}  // namespace mlc::driver
