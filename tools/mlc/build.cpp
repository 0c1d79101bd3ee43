#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/driver/build_recipe.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/mlc/command.h"
#include "tools/mlc/pass_output.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

struct BuildArguments {
  std::vector<std::string> recipes;
  CompileOptions base;
};

// JSON cannot represent infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }

Json ToJson(const BuildCheck& check) {
  const verify::Comparison& c = check.comparison;
  Json json;
  if (check.kind == BuildCheck::Kind::kLimit)
    json = {{"kind", "limit"}, {"what", check.what}, {"found", check.size}, {"limit", check.most}};
  else if (check.kind == BuildCheck::Kind::kReference)
    json = {{"kind", "reference"},    {"output", check.what},
            {"budget", check.budget}, {"max_error", Number(c.max_error)},
            {"rmse", Number(c.rmse)}, {"figures", Describe(c)}};
  else
    json = {{"kind", "accuracy"},
            {"output", check.what},
            {"accuracy", check.accuracy},
            {"expected", check.expected}};
  if (!check.note.empty()) json["note"] = check.note;
  json["ok"] = check.ok;
  return json;
}

Json ToJson(const std::string& name, const BuildResult& result) {
  const CompileResult& compiled = result.compiled;
  Json json{{"name", name},
            {"package", fs::absolute(compiled.package).string()},
            {"precision", compiled.precision},
            {"target", TargetName(compiled.target)},
            {"operations", compiled.operations},
            {"weight_bytes", compiled.weight_bytes},
            {"package_bytes", result.package_bytes},
            {"checks", Json::array()}};
  for (const BuildCheck& check : result.checks) json["checks"].push_back(ToJson(check));
  if (!result.bundle.empty()) json["bundle"] = fs::absolute(result.bundle).string();
  return json;
}

void Print(const std::string& name, const BuildResult& result) {
  const CompileResult& compiled = result.compiled;
  fmt::print("{}.mlpackage  {}, {}, {} operations, {:.2f} MB of weights\n", name,
             TargetName(compiled.target), compiled.precision, compiled.operations,
             static_cast<double>(compiled.weight_bytes) / 1e6);
  for (const BuildCheck& check : result.checks) {
    const char* word = check.ok ? "ok" : "FAIL";
    if (check.kind == BuildCheck::Kind::kLimit)
      fmt::print("  {:<4} {} {}, at most {}\n", word, check.what, check.size, check.most);
    else if (check.kind == BuildCheck::Kind::kAccuracy)
      fmt::print("  {:<4} accuracy {:.2f} %, expected {:.2f} %\n", word, check.accuracy * 100,
                 check.expected * 100);
    else
      fmt::print("  {:<4} {} against the reference: {} (budget {})\n", word, check.what,
                 Describe(check.comparison), check.budget);
    if (!check.note.empty()) fmt::print("       {}\n", check.note);
  }
}

// Each variant is reported when it is built; the failure of one does not affect the others.
int Build(const BuildArguments& given, Session& session) {
  int code = 0;
  Json reports = Json::array(), errors = reports;
  // Reports the current exception, for the recipe or a variant of it.
  auto fail = [&](const std::string& recipe, const std::string& variant) {
    Json list = Json::array();
    for (const Error& error : CurrentErrors()) {
      code = std::max(code, ExitCode(error.id()));
      Json json = ErrorJson(error);
      list.push_back(json);
      json["recipe"] = recipe;
      if (!variant.empty()) json["variant"] = variant;
      errors.push_back(std::move(json));
      if (session.json) continue;
      std::fflush(stdout);
      fmt::print(stderr, "{}{}\n", variant.empty() ? "" : variant + ": ",
                 WithFlags(error.Render()));
    }
    return list;
  };
  for (const std::string& path : given.recipes) {
    Json report{{"recipe", path}, {"variants", Json::array()}};
    try {
      Recipe recipe = ReadRecipe(path);
      std::vector<SourceFile> source = CheckSource(recipe, session.diagnostics);
      const CheckFiles files = ReadCheckFiles(recipe);
      for (const Recipe::Variant& variant : recipe.variants) {
        Json& built = report["variants"].emplace_back();
        try {
          auto result =
              BuildVariant(recipe, variant, source, files, given.base, session.diagnostics);
          built = ToJson(variant.name, result);
          if (!result.ok()) code = std::max(code, ExitCode("check-failed"));
          if (!session.json) Print(variant.name, result);
        } catch (...) {
          built = Json{{"name", variant.name}, {"errors", fail(path, variant.name)}};
          if (!session.json) fmt::print("{}  not built\n", variant.name);
        }
        std::fflush(stdout);
      }
    } catch (...) {
      report["errors"] = fail(path, "");
    }
    reports.push_back(std::move(report));
  }
  if (session.json) {
    Json json{{"ok", code == 0}, {"recipes", reports}};
    if (!errors.empty()) json["errors"] = errors;
    PrintDocument(json);
  } else {
    fmt::print("{}\n", code == 0 ? "PASSED" : "FAILED");
  }
  return code;
}

}  // namespace

Command BuildCommand() {
  auto given = std::make_shared<BuildArguments>();
  ShowPasses(given->base.passes);
  return {"build",
          "Compile and check the packages of a recipe",
          "mlc build manifests/digits.json",
          {{"RECIPE...", "", "JSON recipes (manifests/README.md)", Into(given->recipes), true},
           {"--force", "",
            "replace whatever exists at the packages' paths, even on file systems without "
            "atomic exchange",
            Switch(given->base.force)},
           JsonOption()},
          [given](Session& session) { return Build(*given, session); }};
}

}  // namespace mlc::driver
