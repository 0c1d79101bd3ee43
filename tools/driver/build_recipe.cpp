#include "tools/driver/build_recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/coreml/manifest.h"
#include "backends/coreml/write_mlmodelc.h"
#include "lib/engine/engine.h"
#include "lib/ir/input_conversion.h"
#include "lib/support/atomic_install.h"
#include "lib/verify/fp16_floor.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/options.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// Returns the rows [first, first + count) of a sample array, in the shape of the model's input.
Tensor Batch(const Tensor& samples, int64_t first, int64_t count, const Shape& shape) {
  Tensor rows = samples.Rows(first, first + count);
  return IsStatic(shape) && Product(shape).constant() == rows.size()
             ? rows.Reshaped(StaticDims(shape))
             : rows;
}

// Returns the program's outputs for all samples, concatenated along their first dimension; string
// outputs are omitted.
std::map<std::string, Tensor> RunSamples(const Program& program,
                                         std::map<std::string, Tensor> samples,
                                         const engine::EngineOptions& options = {}) {
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
  engine::Engine engine(main, options);
  std::vector<std::vector<std::byte>> bytes(main.outputs.size());
  std::vector<Tensor> last(main.outputs.size());
  for (int64_t run = 0; run < runs; ++run) {
    std::map<std::string, Tensor> given;
    for (size_t i = 0; i < main.inputs.size(); ++i)
      given[main.inputs[i].source_name] = Batch(samples.at(main.inputs[i].source_name),
                                                run * batch[i], batch[i], values[i]->type.shape);
    std::map<std::string, Tensor> results = engine.Run(MakeInputs(main, given));
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

int64_t FolderBytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  return bytes;
}

// Returns a variant's options as those of `mlc compile`, except for output paths, which the
// recipe's name determines, and the options of the source.
CompileOptions OptionsOf(const Recipe& recipe, const Recipe::Variant& variant,
                         const CompileOptions& base) {
  CompileOptions options = base;
  const std::vector<Option> table = CompileTable(options);
  std::vector<Option> allowed;
  std::ranges::copy_if(table, std::back_inserter(allowed), [](const Option& option) {
    return option.name != "--save-ir" && option.name != "--stats" && option.name != "--report" &&
           option.name != "--data-root";
  });
  GivenOptions given = ParseOptions(allowed, variant.options);
  for (const Option& option : allowed) {
    auto it = given.find(option.key());
    if (it == given.end()) continue;
    for (std::string& value : it->second)
      if (std::optional<size_t> place = PlaceIn(option, value))
        value = value.substr(0, *place) + (recipe.folder / value.substr(*place)).string();
  }
  Fill(allowed, given);
  options.sha256 = true;
  if (!recipe.data_root.empty())
    options.import.data_root = (recipe.folder / recipe.data_root).string();
  return options;
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
    std::map<std::string, Tensor> outputs =
        RunSamples(one, samples, {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
    return std::vector<verify::StepResults>{
        {verify::NamedTensors(outputs.begin(), outputs.end()), {}}};
  };
  return Fp16Budgets(budgets, run(program), run(verify::RoundConstants(program)));
}

// Moves an output built elsewhere on the same file system to its destination.
void Install(const fs::path& made, const fs::path& target, Staging::Kind kind, bool force) {
  Staging staging(target, kind, force);
  fs::rename(made, staging.path());
  staging.Commit();
}

void CheckLimits(const Recipe::Variant& variant, BuildResult& result) {
  for (const auto& [what, most] : variant.limits) {
    int64_t size = what == "operations" ? result.compiled.operations : result.package_bytes;
    result.checks.push_back({.kind = BuildCheck::Kind::kLimit,
                             .what = what,
                             .ok = size <= most,
                             .size = size,
                             .most = most});
  }
}

BuildCheck CheckReference(const std::string& output, const Tensor& value, const Tensor& given,
                          const verify::Budgets& budgets) {
  Tensor reference = WithBfloat16(given, value.dtype());
  const verify::Budget& budget = budgets.of(output);
  BuildCheck check{.kind = BuildCheck::Kind::kReference, .what = output};
  const verify::Comparison& c = check.comparison = Compare(value, reference, budget);
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

bool BuildResult::ok() const {
  return std::ranges::all_of(checks, [](const BuildCheck& check) { return check.ok; });
}

std::vector<SourceFile> CheckSource(const Recipe& recipe, Diagnostics& diagnostics) {
  const fs::path source = recipe.folder / recipe.source,
                 data_root =
                     recipe.data_root.empty() ? fs::path() : recipe.folder / recipe.data_root;
  std::optional<Error> unreadable;  // reported only if the hash matches the recipe
  SourceFacts facts;
  try {
    const Frontend& frontend = FrontendOf(source);
    if (frontend.facts) facts = frontend.facts(source, data_root);
    std::vector<fs::path> read;
    TokenizerFileOf(source, read, diagnostics);
    for (const fs::path& file : read) facts.Add(source, file);
  } catch (const Error& error) {
    if (!fs::exists(source)) throw;
    unreadable = error;
  }
  std::vector<SourceFile> files = SourceHashes(SourceFiles(source, facts), true).Finish();
  if (std::string found = CombinedSha256(files); found != recipe.sha256) {
    Error error("check-failed", "source \"{}\": hash mismatch", source.string());
    error.Expected(recipe.sha256).Note("found: " + found);
    if (files.size() > 1)
      for (const SourceFile& file : files) error.Note(file.sha256 + "  " + file.name);
    throw error.Help(
        "fetch the model that the recipe was written for, or update the hash in the recipe");
  }
  if (unreadable) throw *unreadable;
  return files;
}

CheckFiles ReadCheckFiles(const Recipe& recipe) {
  CheckFiles files;
  std::vector<Error> errors;
  auto read = [&](const std::string& file, std::string_view where) {
    try {
      return ReadTensor(recipe.folder / file);
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

BuildResult BuildVariant(const Recipe& recipe, const Recipe::Variant& variant,
                         const std::vector<SourceFile>& source, const CheckFiles& files,
                         const CompileOptions& base, Diagnostics& diagnostics) {
  if (!variant.errors.empty()) throw Errors(variant.errors);
  const fs::path& folder = recipe.folder;
  const fs::path final_package = variant.name + ".mlpackage",
                 final_bundle = variant.name + ".mlmodelc";
  CompileOptions options = OptionsOf(recipe, variant, base);
  coreml::CheckPackageTarget(final_package, options.force);
  if (options.manifest) coreml::CheckManifestTarget(final_package, options.force);
  if (variant.bundle) coreml::CheckBundleTarget(final_bundle, options.force);
  // The package is built under a hidden name until it has passed its checks.
  Staging hidden(final_package, Staging::kFolder, options.force);
  const fs::path& package = hidden.path();
  Diagnostics own;
  BuildResult result;
  result.compiled = Compile(folder / recipe.source, package, options, own, &source);
  for (const Error& warning : own.warnings()) diagnostics.Warn(warning);
  for (const std::string& note : own.notes()) diagnostics.Note(variant.name + ": " + note);
  result.package_bytes = FolderBytes(package);
  if (variant.bundle) {
    result.bundle = package.parent_path() / final_bundle;
    MakeBundle(package, result.bundle, final_package, false, {options.versions, options.force},
               own);
  }
  CheckLimits(variant, result);
  const std::map<std::string, Tensor>& samples = files.inputs;
  Program program = Import(package, {}, own);
  std::vector<std::string> inputs;
  for (const Port& port : program.main()->inputs) inputs.push_back(port.source_name);
  for (const auto& [name, given] : samples)
    if (std::ranges::find(inputs, name) == inputs.end() && !IsAbsent(*program.main(), name, given))
      throw Error("bad-recipe", "check.inputs: the model has no input \"{}\"", name)
          .Expected("{}", fmt::join(inputs, ", "));
  std::map<std::string, Tensor> outputs = RunSamples(program, samples);
  auto output = [&](const std::string& wanted) -> const Tensor& {
    auto it = outputs.find(wanted);
    if (it == outputs.end())
      throw Error("bad-recipe", "the model has no numeric output \"{}\"", wanted);
    return it->second;
  };
  verify::Budgets budgets = BudgetsOf(recipe, variant, result.compiled.precision);
  // The floor takes two more runs, so it is computed only if the fp16 budget alone is exceeded.
  bool floors = variant.budget.empty() && result.compiled.precision == "fp16";
  for (const auto& [wanted, given] : files.reference) {
    const Tensor& value = output(wanted);
    BuildCheck check = CheckReference(wanted, value, given, budgets);
    if (!check.ok && check.comparison.discriminating && std::exchange(floors, false))
      budgets = WithFloors(budgets, folder / recipe.source, options, samples);
    result.checks.push_back(check.ok ? std::move(check)
                                     : CheckReference(wanted, value, given, budgets));
  }
  if (recipe.accuracy) {
    BuildCheck check{.kind = BuildCheck::Kind::kAccuracy, .what = recipe.accuracy->output};
    check.expected = recipe.accuracy->expected;
    check.accuracy = Accuracy(
        output(check.what),
        ConvertInput(files.labels, DType::kInt64, {"bad-recipe", "check.accuracy.labels"}));
    check.ok = std::fabs(check.accuracy - check.expected) <= recipe.accuracy->tolerance + 1e-12;
    result.checks.push_back(std::move(check));
  }
  const TokenizerFile tokenizer = ReadTokenizerBeside(package);
  CheckTokenizerTarget(final_package, tokenizer, options.force);
  const fs::path manifest = result.compiled.manifest;
  hidden.Commit();
  result.compiled.package = final_package;
  InstallTokenizer(final_package, tokenizer);
  if (!tokenizer.format.empty())
    result.compiled.tokenizer = TokenizerPath(final_package, tokenizer.format);
  if (variant.bundle)
    Install(std::exchange(result.bundle, final_bundle), final_bundle, Staging::kFolder,
            options.force);
  if (!manifest.empty()) {
    result.compiled.manifest = coreml::ManifestPath(final_package);
    Install(manifest, result.compiled.manifest, Staging::kFile, options.force);
  }
  return result;
}

}  // namespace mlc::driver
