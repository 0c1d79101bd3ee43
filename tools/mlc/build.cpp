#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/engine/engine.h"
#include "lib/ir/given.h"
#include "lib/ir/npy.h"
#include "lib/support/hash.h"
#include "lib/verify/compare.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/model.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }
double NumberFrom(const Json& json) {
  return json.is_string() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

Json ReadRecipe(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw Error("file-io", fmt::format("cannot open \"{}\"", path.string()));
  try {
    return Json::parse(file);
  } catch (const nlohmann::json::exception& e) {
    throw Error("bad-recipe", e.what()).At({path.string(), ""});
  }
}

// Every field that a recipe may have; what is required and of which type is asked for where it is
// read. manifests/recipe.schema.json.
void CheckFields(const Json& object, std::initializer_list<std::string_view> known,
                 std::string_view where) {
  if (!object.is_object()) throw Error("bad-recipe", fmt::format("{} is no object", where));
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Error("bad-recipe", fmt::format("{}: unknown field \"{}\"", where, key))
          .Expected(fmt::format("{}", fmt::join(known, ", ")));
}

// Rows [first, first + count) of a sample array, in the shape of the model's input.
Tensor Batch(const Tensor& samples, int64_t first, int64_t count, const Shape& shape) {
  Tensor rows = samples.Rows(first, first + count);
  return IsStatic(shape) && Product(shape).constant() == rows.size()
             ? rows.Reshaped(StaticDims(shape))
             : rows;
}

// The program's outputs for all samples, joined along their first dimension.
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
    std::map<std::string, Tensor> results = engine.Run(MakeInputs(main, given, 0));
    for (size_t k = 0; k < main.outputs.size(); ++k) {
      last[k] = ToSourceType(results.at(main.body.outputs()[k]->name), main.outputs[k]);
      std::span<const std::byte> data = last[k].bytes();
      bytes[k].insert(bytes[k].end(), data.begin(), data.end());
    }
  }
  std::map<std::string, Tensor> outputs;
  for (size_t k = 0; k < main.outputs.size() && runs > 0; ++k) {
    Dims dims = last[k].rank() ? last[k].dims() : Dims{1};
    dims[0] *= runs;
    outputs[main.outputs[k].source_name] =
        Tensor::Owned(last[k].dtype(), dims, std::move(bytes[k]));
  }
  return outputs;
}

double Accuracy(const Tensor& scores, const Tensor& labels) {
  if (scores.rank() != 2 || labels.size() != scores.dims()[0] || labels.size() == 0)
    throw Error("bad-recipe",
                "check.accuracy: the output is not [samples, classes] for these labels");
  int64_t right = 0, classes = scores.dims()[1];
  for (int64_t row = 0; row < labels.size(); ++row) {
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

Json BuildVariant(const Json& recipe, const Json& variant, const fs::path& folder, bool& ok,
                  const Invocation& invocation) {
  CheckFields(variant, {"name", "options", "budget", "limits", "bundle"}, "variant");
  std::string name =
      recipe.at("name").get<std::string>() + "-" + variant.at("name").get<std::string>();
  fs::path source = folder / recipe.at("source").at("path").get<std::string>();
  fs::path package = name + ".mlpackage";
  Command compile = CompileCommand();
  std::vector<std::string> arguments = {source.string()};
  for (const Json& option : variant.at("options")) arguments.push_back(option.get<std::string>());
  Invocation options;
  ParseArguments(compile, arguments, options);
  options.values_["--sha256"] = {};
  if (invocation.has("--force")) options.values_["--force"] = {};
  CompileResult result = CompileModel(source, package, options);
  Json report{{"name", name},
              {"package", fs::absolute(package).string()},
              {"precision", result.precision},
              {"target", TargetName(result.target)},
              {"operations", result.operations},
              {"weight_bytes", result.weight_bytes},
              {"package_bytes", FolderBytes(package)},
              {"checks", Json::array()}};
  if (variant.value("bundle", false)) {
    fs::path bundle = name + ".mlmodelc";
    Precompile(package, bundle, package, false, options);
    report["bundle"] = fs::absolute(bundle).string();
  }
  if (variant.contains("limits")) {
    const Json& limits = variant.at("limits");
    CheckFields(limits, {"package_bytes", "operations"}, "limits");
    for (const auto& [what, most] : limits.items()) {
      if (!most.is_number_unsigned())
        throw Error("bad-recipe", fmt::format("limits: {} is {}", what, most.dump()))
            .Expected("a whole number, at least 0");
      int64_t found = report.at(what).get<int64_t>();
      bool within = found <= most.get<int64_t>();
      ok = ok && within;
      report["checks"].push_back(
          {{"kind", "limit"}, {"what", what}, {"found", found}, {"limit", most}, {"ok", within}});
    }
  }
  if (!recipe.contains("check")) return report;
  const Json& check = recipe.at("check");
  CheckFields(check, {"inputs", "reference", "accuracy"}, "check");
  std::map<std::string, Tensor> samples;
  for (const auto& [input, file] : check.at("inputs").items())
    samples[input] = ReadTensor(folder / file.get<std::string>());
  Program program = ImportModel(package, {}, options.diagnostics);
  std::map<std::string, Tensor> outputs = RunSamples(program, samples);
  auto output = [&](const std::string& wanted) -> const Tensor& {
    auto it = outputs.find(wanted);
    if (it == outputs.end())
      throw Error("bad-recipe", fmt::format("the model has no output \"{}\"", wanted));
    return it->second;
  };
  std::string budget_name = variant.contains("budget")   ? variant.at("budget").get<std::string>()
                            : result.precision == "fp32" ? "fp32"
                                                         : "fp16";
  if (check.contains("reference"))
    for (const auto& [wanted, file] : check.at("reference").items()) {
      const Tensor& found = output(wanted);
      Tensor reference = WithBfloat16(ReadTensor(folder / file.get<std::string>()), found.dtype());
      Budget budget = ParseBudgets(budget_name).of(wanted);
      Comparison c = Compare(found, reference, budget);
      bool within = c.Within(budget) && c.discriminating;
      ok = ok && within;
      report["checks"].push_back({{"kind", "reference"},
                                  {"output", wanted},
                                  {"budget", budget_name},
                                  {"max_error", Number(c.max_error)},
                                  {"rmse", Number(c.rmse)},
                                  {"ok", within}});
    }
  if (check.contains("accuracy")) {
    const Json& accuracy = check.at("accuracy");
    CheckFields(accuracy, {"output", "labels", "expected", "tolerance"}, "check.accuracy");
    double found = Accuracy(output(accuracy.at("output").get<std::string>()),
                            TakeGiven(ReadTensor(folder / accuracy.at("labels").get<std::string>()),
                                      DType::kInt64, {"bad-recipe", "check.accuracy.labels"}));
    double expected = accuracy.at("expected").get<double>();
    bool within = std::fabs(found - expected) <= accuracy.value("tolerance", 0.0) + 1e-12;
    ok = ok && within;
    report["checks"].push_back({{"kind", "accuracy"},
                                {"output", accuracy.at("output")},
                                {"accuracy", found},
                                {"expected", expected},
                                {"ok", within}});
  }
  return report;
}

Json BuildRecipe(const fs::path& path, bool& ok, const Invocation& invocation) {
  Json recipe = ReadRecipe(path);
  try {
    CheckFields(recipe, {"$schema", "name", "description", "source", "variants", "check"},
                "recipe");
    CheckFields(recipe.at("source"), {"path", "sha256", "made_by"}, "source");
    fs::path source = path.parent_path() / recipe.at("source").at("path").get<std::string>();
    std::string hash = Sha256OfFile(source),
                expected = recipe.at("source").at("sha256").get<std::string>();
    if (hash != expected)
      throw Error("check-failed", fmt::format("source \"{}\" has another hash", source.string()))
          .Expected(expected)
          .Note("found: " + hash)
          .Help("fetch the model that the recipe means, or put the new hash into the recipe");
    Json report{{"recipe", path.string()}, {"variants", Json::array()}};
    std::set<std::string> names;
    for (const Json& variant : recipe.at("variants"))
      if (std::string name = variant.at("name").get<std::string>(); !names.insert(name).second)
        throw Error("bad-recipe", fmt::format("two variants are called \"{}\"", name));
    if (names.empty()) throw Error("bad-recipe", "variants is empty").Expected("at least one");
    for (const Json& variant : recipe.at("variants"))
      report["variants"].push_back(
          BuildVariant(recipe, variant, path.parent_path(), ok, invocation));
    return report;
  } catch (const nlohmann::json::exception& e) {
    throw Error("bad-recipe", e.what())
        .At({path.string(), ""})
        .Help("manifests/recipe.schema.json says what a recipe holds");
  } catch (Error& error) {
    if (!error.has_location()) error.At({path.string(), ""});
    throw;
  }
}

int Build(const Invocation& invocation) {
  bool ok = true;
  Json reports = Json::array();
  for (const std::string& recipe : invocation.all("RECIPE"))
    reports.push_back(BuildRecipe(recipe, ok, invocation));
  if (invocation.json()) {
    fmt::print("{}\n", Json{{"ok", ok}, {"recipes", reports}}.dump(2));
    return ok ? 0 : 3;
  }
  for (const Json& report : reports)
    for (const Json& variant : report["variants"]) {
      fmt::print("{}.mlpackage  {}, {}, {} operations, {:.2f} MB of weights\n",
                 variant["name"].get<std::string>(), variant["target"].get<std::string>(),
                 variant["precision"].get<std::string>(), variant["operations"].get<int64_t>(),
                 static_cast<double>(variant["weight_bytes"].get<uint64_t>()) / 1e6);
      for (const Json& check : variant["checks"]) {
        const char* word = check["ok"].get<bool>() ? "ok" : "FAIL";
        if (check["kind"] == "limit")
          fmt::print("  {:<4} {} {}, at most {}\n", word, check["what"].get<std::string>(),
                     check["found"].get<int64_t>(), check["limit"].get<int64_t>());
        else if (check["kind"] == "accuracy")
          fmt::print("  {:<4} accuracy {:.2f} %, expected {:.2f} %\n", word,
                     check["accuracy"].get<double>() * 100, check["expected"].get<double>() * 100);
        else
          fmt::print(
              "  {:<4} {} against the reference: max error {:.2e}, RMSE {:.2e} (budget {})\n", word,
              check["output"].get<std::string>(), NumberFrom(check["max_error"]),
              NumberFrom(check["rmse"]), check["budget"].get<std::string>());
      }
    }
  fmt::print("{}\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 3;
}

}  // namespace

Command BuildCommand() {
  return {"build",
          "Compile and check what a recipe describes",
          "mlc build manifests/digits.json",
          {{"RECIPE...", "", "recipes, JSON as in manifests/recipe.schema.json", true},
           {"--force", "", "replace existing packages on any file system"},
           {"--json", "", "one JSON document on stdout"}},
          Build};
}

}  // namespace mlc
