#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/engine/engine.h"
#include "lib/ir/given.h"
#include "lib/verify/compare.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/model.h"
#include "tools/mlc/recipe.h"
#include "tools/mlc/source.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }

Json ErrorJson(const Error& error) {
  return {{"id", error.id()},
          {"text", error.text()},
          {"location", error.location().ToString()},
          {"notes", error.notes()}};
}

// Rows [first, first + count) of a sample array, in the shape of the model's input.
Tensor Batch(const Tensor& samples, int64_t first, int64_t count, const Shape& shape) {
  Tensor rows = samples.Rows(first, first + count);
  return IsStatic(shape) && Product(shape).constant() == rows.size()
             ? rows.Reshaped(StaticDims(shape))
             : rows;
}

// The program's outputs for all samples, joined along their first dimension; those of text are left
// out.
std::map<std::string, Tensor> RunSamples(const Program& program,
                                         std::map<std::string, Tensor> samples) {
  const Function& main = *program.main();
  std::vector<const Value*> values = InputValues(main);
  int64_t runs = -1;
  std::vector<int64_t> batch(main.inputs.size(), 1);
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    auto it = samples.find(main.inputs[i].source_name);
    if (it == samples.end())
      throw Error("bad-recipe",
                  fmt::format("check.inputs lacks \"{}\"", main.inputs[i].source_name));
    // Here, where an error can count elements as the file does.
    const Port& port = main.inputs[i];
    if (port.feature == Port::Feature::kMultiArray && port.source_dtype != DType::kNone)
      it->second = TakeGiven(it->second, port.source_dtype,
                             {"bad-recipe", fmt::format("check.inputs.{}", port.source_name)});
    const Shape& shape = values[i]->type.shape;
    if (!shape.empty() && shape[0].is_constant())
      batch[i] = std::max<int64_t>(shape[0].constant(), 1);
    if (it->second.rank() == 0 || it->second.dims()[0] % batch[i] != 0)
      throw Error("bad-recipe",
                  fmt::format("check.inputs.{}: {} samples are no multiple of the batch {}",
                              main.inputs[i].source_name,
                              it->second.rank() ? it->second.dims()[0] : 0, batch[i]));
    if (it->second.size() == 0)
      throw Error("bad-recipe",
                  fmt::format("check.inputs.{}: there are no samples", main.inputs[i].source_name));
    int64_t own = it->second.dims()[0] / batch[i];
    if (runs >= 0 && own != runs)
      throw Error("bad-recipe", "check.inputs have different numbers of runs");
    runs = own;
  }
  Engine engine(main);
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
                    fmt::format("check: output \"{}\" has another shape in run {}: [{}], not [{}]",
                                main.outputs[k].source_name, run, fmt::join(result.dims(), ", "),
                                fmt::join(last[k].dims(), ", ")));
      last[k] = std::move(result);
      std::span<const std::byte> data = last[k].bytes();
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
    throw Error("bad-recipe",
                "check.accuracy: the output is not [samples, classes] for these labels");
  int64_t right = 0, classes = scores.dims()[1];
  for (int64_t row = 0; row < labels.size(); ++row) {
    if (labels.Int(row) < 0 || labels.Int(row) >= classes)
      throw Error("bad-recipe", fmt::format("check.accuracy: label {} is {}, of {} classes", row,
                                            labels.Int(row), classes));
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

// A variant's options as those of `mlc compile`; but for where things go, which the recipe's name
// says, and the source's own.
void ParseOptions(const Recipe& recipe, const Recipe::Variant& variant, Invocation& options) {
  Command command{"options", "", "", {}, nullptr, {}};
  for (const Flag& flag : CompileFlags())
    if (flag.name != "--save-ir" && flag.name != "--stats" && flag.name != "--data-root")
      command.flags.push_back(flag);
  ParseArguments(command, variant.options, options);
  for (const Flag& flag : command.flags) {
    if (!flag.value.ends_with("FILE") || !options.has(flag.name)) continue;
    for (std::string& value : options.values_.at(std::string(flag.name))) {
      size_t named = flag.value.ends_with("=FILE") ? value.rfind('=') + 1 : 0;
      value = value.substr(0, named) + (recipe.folder / value.substr(named)).string();
    }
  }
}

// What is read of a recipe's source, with hashes. Error "check-failed" when it is not what the
// recipe means.
std::vector<SourceFile> CheckSource(const Recipe& recipe, const fs::path& source,
                                    const fs::path& data_root, Diagnostics& diagnostics) {
  std::optional<Error> unreadable;  // said when it is the file that the recipe means
  OnnxFacts facts;
  std::optional<Program> program;
  try {
    Format format = DetectFormat(source);
    if (format == Format::kOnnx) facts = ReadOnnxFacts(source, data_root);
    if (format == Format::kMilText) program = ImportModel(source, {}, diagnostics);
  } catch (const Error& error) {
    if (!fs::exists(source)) throw;
    unreadable = error;
  }
  std::vector<SourceFile> files =
      SourceHashes(SourceFiles(source, facts, program ? &*program : nullptr), true).Finish();
  if (std::string found = CombinedSha256(files); found != recipe.sha256) {
    Error error("check-failed", fmt::format("source \"{}\" has another hash", source.string()));
    error.Expected(recipe.sha256).Note("found: " + found);
    if (files.size() > 1)
      for (const SourceFile& file : files) error.Note(file.sha256 + "  " + file.name);
    throw error.Help("fetch the model that the recipe means, or put the new hash into the recipe");
  }
  if (unreadable) throw *unreadable;
  return files;
}

// `name` is empty where the recipe spells the budget out.
Budgets BudgetsOf(const Recipe& recipe, const Recipe::Variant& variant,
                  const std::string& precision) {
  if (variant.budget.empty()) return ParseBudgets(precision == "fp32" ? "fp32" : "fp16");
  if (!variant.budget.starts_with('{')) return ParseBudgets(variant.budget);
  Budgets budgets = BudgetsFromJson(variant.budget, recipe.file.string());
  budgets.name.clear();
  for (const auto& [output, unused] : budgets.outputs)
    if (!recipe.reference.contains(output))
      throw Error("bad-recipe",
                  fmt::format("budget: output \"{}\" is compared with no reference", output));
  return budgets;
}

Json BuildVariant(const Recipe& recipe, const Recipe::Variant& variant,
                  const std::vector<SourceFile>& source, const Invocation& invocation,
                  Diagnostics& diagnostics) {
  if (!variant.errors.empty()) throw Errors(variant.errors);
  const fs::path& folder = recipe.folder;
  fs::path package = variant.name + ".mlpackage";
  Invocation options;
  ParseOptions(recipe, variant, options);
  options.values_["--sha256"] = {};
  if (invocation.has("--force")) options.values_["--force"] = {};
  if (!recipe.data_root.empty())
    options.values_["--data-root"] = {(folder / recipe.data_root).string()};
  CompileResult result = CompileModel(folder / recipe.source, package, options, &source);
  for (const Error& warning : options.diagnostics.warnings()) diagnostics.Warn(warning);
  for (const std::string& note : options.diagnostics.notes())
    diagnostics.Note(variant.name + ": " + note);
  Json report{{"name", variant.name},
              {"package", fs::absolute(package).string()},
              {"precision", result.precision},
              {"target", TargetName(result.target)},
              {"operations", result.operations},
              {"weight_bytes", result.weight_bytes},
              {"package_bytes", FolderBytes(package)},
              {"checks", Json::array()}};
  auto add = [&](Json check, bool ok) {
    check["ok"] = ok;
    report["checks"].push_back(std::move(check));
  };
  if (variant.bundle) {
    fs::path bundle = variant.name + ".mlmodelc";
    Precompile(package, bundle, package, false, options);
    report["bundle"] = fs::absolute(bundle).string();
  }
  for (const auto& [what, most] : variant.limits) {
    int64_t found = report.at(what).get<int64_t>();
    add({{"kind", "limit"}, {"what", what}, {"found", found}, {"limit", most}}, found <= most);
  }
  std::map<std::string, Tensor> samples;
  for (const auto& [input, file] : recipe.inputs) samples[input] = ReadTensor(folder / file);
  Program program = ImportModel(package, {}, options.diagnostics);
  std::vector<std::string> inputs;
  for (const Port& port : program.main()->inputs) inputs.push_back(port.source_name);
  for (const auto& [name, given] : samples)
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end() &&
        !IsAbsent(*program.main(), name, given))
      throw Error("bad-recipe", fmt::format("check.inputs: the model has no input \"{}\"", name))
          .Expected(fmt::format("{}", fmt::join(inputs, ", ")));
  std::map<std::string, Tensor> outputs = RunSamples(program, samples);
  auto output = [&](const std::string& wanted) -> const Tensor& {
    auto it = outputs.find(wanted);
    if (it == outputs.end())
      throw Error("bad-recipe", fmt::format("the model has no output \"{}\" of numbers", wanted));
    return it->second;
  };
  Budgets budgets = BudgetsOf(recipe, variant, result.precision);
  for (const auto& [wanted, file] : recipe.reference) {
    Tensor value = output(wanted),
           reference = WithBfloat16(ReadTensor(folder / file), value.dtype());
    const Budget& budget = budgets.of(wanted);
    Comparison c = Compare(value, reference, budget);
    Json check{{"kind", "reference"},
               {"output", wanted},
               {"budget", budgets.name.empty() ? Describe(budget) : budgets.name},
               {"max_error", Number(c.max_error)},
               {"rmse", Number(c.rmse)},
               {"figures", Describe(c)}};
    if (!c.discriminating) check["note"] = "the reference is constant: it tells nothing";
    if (std::optional<HiddenSlice> hidden = FindHidden(value, reference);
        hidden && c.mismatch.empty() && !budget.per_axis && !budget.elementwise())
      check["note"] = Describe(*hidden);
    add(std::move(check), c.Within(budget) && c.discriminating);
  }
  if (recipe.accuracy) {
    double found = Accuracy(output(recipe.accuracy->output),
                            TakeGiven(ReadTensor(folder / recipe.accuracy->labels), DType::kInt64,
                                      {"bad-recipe", "check.accuracy.labels"}));
    add({{"kind", "accuracy"},
         {"output", recipe.accuracy->output},
         {"accuracy", found},
         {"expected", recipe.accuracy->expected}},
        std::fabs(found - recipe.accuracy->expected) <= recipe.accuracy->tolerance + 1e-12);
  }
  return report;
}

bool AllWell(const Json& report) {
  return std::all_of(report["checks"].begin(), report["checks"].end(),
                     [](const Json& check) { return check["ok"].get<bool>(); });
}

void Print(const Json& report) {
  fmt::print("{}.mlpackage  {}, {}, {} operations, {:.2f} MB of weights\n",
             report["name"].get<std::string>(), report["target"].get<std::string>(),
             report["precision"].get<std::string>(), report["operations"].get<int64_t>(),
             static_cast<double>(report["weight_bytes"].get<uint64_t>()) / 1e6);
  for (const Json& check : report["checks"]) {
    const char* word = check["ok"].get<bool>() ? "ok" : "FAIL";
    if (check["kind"] == "limit")
      fmt::print("  {:<4} {} {}, at most {}\n", word, check["what"].get<std::string>(),
                 check["found"].get<int64_t>(), check["limit"].get<int64_t>());
    else if (check["kind"] == "accuracy")
      fmt::print("  {:<4} accuracy {:.2f} %, expected {:.2f} %\n", word,
                 check["accuracy"].get<double>() * 100, check["expected"].get<double>() * 100);
    else
      fmt::print("  {:<4} {} against the reference: {} (budget {})\n", word,
                 check["output"].get<std::string>(), check["figures"].get<std::string>(),
                 check["budget"].get<std::string>());
    if (check.contains("note")) fmt::print("       {}\n", check["note"].get<std::string>());
  }
}

// What is built is said when it is there; one that cannot be leaves the others alone.
int Build(const Invocation& invocation) {
  int code = 0;
  Json reports = Json::array(), errors = Json::array();
  // Of the exception at hand, in the recipe or a variant of it.
  auto fail = [&](const std::string& recipe, const std::string& variant) {
    Json list = Json::array();
    for (const Error& error : CurrentErrors()) {
      code = std::max(code, ExitCode(error.id()));
      Json json = ErrorJson(error);
      list.push_back(json);
      json["recipe"] = recipe;
      if (!variant.empty()) json["variant"] = variant;
      errors.push_back(std::move(json));
      if (invocation.json()) continue;
      std::fflush(stdout);
      fmt::print(stderr, "{}{}\n", variant.empty() ? "" : variant + ": ", error.Render());
    }
    return list;
  };
  for (const std::string& path : invocation.all("RECIPE")) {
    Json report{{"recipe", path}, {"variants", Json::array()}};
    try {
      Recipe recipe = ReadRecipe(path);
      std::vector<SourceFile> source =
          CheckSource(recipe, recipe.folder / recipe.source,
                      recipe.data_root.empty() ? fs::path() : recipe.folder / recipe.data_root,
                      invocation.diagnostics);
      for (const Recipe::Variant& variant : recipe.variants) {
        Json& built = report["variants"].emplace_back();
        try {
          built = BuildVariant(recipe, variant, source, invocation, invocation.diagnostics);
          if (!AllWell(built)) code = std::max(code, ExitCode("check-failed"));
          if (!invocation.json()) Print(built);
        } catch (...) {
          built = Json{{"name", variant.name}, {"errors", fail(path, variant.name)}};
          if (!invocation.json()) fmt::print("{}  not built\n", variant.name);
        }
        std::fflush(stdout);
      }
    } catch (...) {
      report["errors"] = fail(path, "");
    }
    reports.push_back(std::move(report));
  }
  if (invocation.json()) {
    Json json{{"ok", code == 0}, {"recipes", reports}};
    if (!errors.empty()) json["errors"] = errors;
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}\n", code == 0 ? "PASSED" : "FAILED");
  }
  return code;
}

}  // namespace

Command BuildCommand() {
  return {
      "build",
      "Compile and check what a recipe describes",
      "mlc build manifests/digits.json",
      {{"RECIPE...", "", "recipes, JSON as in manifests/recipe.schema.json", true},
       {"--force", "", "replace what is where packages go, whatever it is and on any file system"},
       {"--json", "", "one JSON document on stdout"}},
      Build};
}

}  // namespace mlc
