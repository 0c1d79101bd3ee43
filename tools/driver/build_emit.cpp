#include "tools/driver/build_emit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/json_text.h"
#include "lib/support/threads.h"
#include "tools/driver/build_actions.h"
#include "tools/driver/errors.h"
#include "tools/driver/options.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// One variant with the files that it is made from.
struct Unit {
  const Recipe* recipe;
  const Recipe::Variant* variant;
  VariantInputs inputs;
  std::vector<fs::path> source, checks;  // in the order of the recipe
  uint64_t source_bytes = 0;
};

std::string Command(const Unit& unit, const BuildOptions& options, const std::string& program) {
  std::vector<std::string> words{program,
                                 "build",
                                 unit.recipe->file.string(),
                                 "--only",
                                 unit.variant->name,
                                 "-o",
                                 options.output.string()};
  if (!options.cache.place.empty()) words.insert(words.end(), {"--cache", options.cache.place});
  if (options.cache.read_only) words.push_back("--read-only-cache");
  if (!options.latency.baselines.empty())
    words.insert(words.end(), {"--baselines", options.latency.baselines.string()});
  if (options.latency.units)
    words.insert(words.end(), {"--units", std::string(Name(*options.latency.units))});
  return JoinedOptions(words);
}

std::string List(const std::vector<Unit>& units, const BuildOptions& options,
                 const std::string& program) {
  std::string text;
  for (const Unit& unit : units) text += Command(unit, options, program) + "\n";
  return text;
}

// Escapes a path of a build line. https://ninja-build.org/manual.html#_lexical_syntax
std::string NinjaPath(const fs::path& path) {
  std::string text;
  for (char c : path.string()) {
    if (c == ' ' || c == ':' || c == '$') text += '$';
    text += c;
  }
  return text;
}

std::string Ninja(const std::vector<Unit>& units, const BuildOptions& options,
                  const std::string& program) {
  // A job's share of the processors does not change what it writes.
  const int threads = std::max(1, DefaultThreads() / options.jobs);
  const uint64_t limit = MemoryLimitOf(options);
  std::string text = fmt::format(
      "# Written by `mlc build --emit ninja`. Run: ninja -k 0 -f FILE\n"
      "ninja_required_version = 1.7\n\n"
      "pool variants\n  depth = {}\n"
      "pool large\n  depth = 1\n\n"
      "rule variant\n  command = MLC_THREADS={} $run\n  description = $name\n  restat = 1\n"
      "  pool = variants\n\n",
      options.jobs, threads);
  std::string all;
  for (const Unit& unit : units) {
    const fs::path base = options.output / unit.variant->name;
    const fs::path state = options.output / ".mlc-build" / "state" / (unit.variant->name + ".json");
    std::string outputs = NinjaPath(base.string() + ".mlpackage/Manifest.json");
    if (unit.inputs.options.manifest) outputs += " " + NinjaPath(base.string() + ".manifest.json");
    if (unit.variant->bundle) outputs += " " + NinjaPath(base.string() + ".mlmodelc/metadata.json");
    std::set<fs::path> inputs{unit.recipe->file, program};
    inputs.insert(unit.source.begin(), unit.source.end());
    inputs.insert(unit.checks.begin(), unit.checks.end());
    for (const auto& [role, path] : unit.inputs.files) inputs.insert(path);
    text += fmt::format("build {} | {}: variant", NinjaPath(state), outputs);
    for (const fs::path& input : inputs) text += " " + NinjaPath(input);
    std::string run = Command(unit, options, program);
    for (size_t at = 0; (at = run.find('$', at)) != run.npos; at += 2) run.insert(at, "$");
    text += fmt::format("\n  run = {}\n  name = {}\n", run, unit.variant->name);
    if (MemoryForSource(unit.source_bytes) > limit / 2) text += "  pool = large\n";
    text += "\n";
    all += " " + NinjaPath(state);
  }
  return text + "default" + all + "\n";
}

std::string Starlark(const std::string& text) {
  return JsonText(nlohmann::ordered_json(text), -1, BadUtf8::kReplace);
}

std::string Bazel(const std::vector<Unit>& units, const BuildOptions& options) {
  const fs::path root = fs::absolute(options.output).lexically_normal();
  auto label = [&](const fs::path& path) {
    const fs::path below = fs::absolute(path).lexically_normal().lexically_relative(root);
    if (below.empty() || *below.begin() == "..")
      throw Error("usage", "--emit bazel: \"{}\" is not in the folder of the BUILD file, \"{}\"",
                  path.string(), root.string())
          .Help("pass the folder that has all recipes and their files with -o");
    return below.generic_string();
  };
  std::string text =
      "# Written by `mlc build --emit bazel`.\n"
      "load(\"//scripts/bazel:mlc.bzl\", \"mlc_recipe\")\n";
  for (auto first = units.begin(); first != units.end();) {
    auto last = std::find_if(first, units.end(),
                             [&](const Unit& unit) { return unit.recipe != first->recipe; });
    std::set<std::string> data, variants;
    for (auto unit = first; unit != last; ++unit) {
      for (const auto* files : {&unit->source, &unit->checks})
        for (const fs::path& file : *files) data.insert(label(file));
      for (const auto& [role, path] : unit->inputs.files) data.insert(label(path));
      variants.insert(fmt::format("        {}: {},\n", Starlark(unit->variant->name),
                                  Starlark(JoinedOptions(unit->variant->options))));
    }
    text += fmt::format(
        "\nmlc_recipe(\n    name = {},\n    recipe = {},\n    source = {},\n    data = [\n",
        Starlark(first->recipe->name), Starlark(label(first->recipe->file)),
        Starlark(first->recipe->source));
    for (const std::string& file : data) text += fmt::format("        {},\n", Starlark(file));
    text += "    ],\n    variants = {\n";
    for (const std::string& variant : variants) text += variant;
    text += "    },\n)\n";
    first = last;
  }
  return text;
}

}  // namespace

std::string EmitBuild(const std::vector<std::string>& paths, const BuildOptions& options,
                      std::string_view format, const std::string& program) {
  if (format != "list" && format != "ninja" && format != "bazel")
    throw UnknownWord("--emit", format, {"list", "ninja", "bazel"});
  std::vector<std::unique_ptr<Recipe>> recipes;
  std::vector<Unit> units;
  std::vector<Error> errors;
  for (const std::string& path : paths) {
    try {
      recipes.push_back(std::make_unique<Recipe>(ReadRecipe(path)));
      const Recipe& recipe = *recipes.back();
      const RecipeInputs inputs = FindInputs(recipe);
      for (const Recipe::Variant& variant : recipe.variants) {
        if (!IsWanted(variant.name, options.only)) continue;
        Unit unit{&recipe, &variant, CheckVariant(recipe, variant, options.base)};
        for (const SourceFile& file : inputs.source) {
          unit.source.push_back(file.path);
          unit.source_bytes += fs::file_size(file.path);
        }
        for (const auto& [role, file] : inputs.checks) unit.checks.push_back(file);
        units.push_back(std::move(unit));
      }
    } catch (...) {
      for (Error& error : CurrentErrors()) errors.push_back(std::move(error));
    }
  }
  if (!errors.empty()) throw Errors(std::move(errors));
  if (units.empty()) throw Error("usage", "no variant matches {}", fmt::join(options.only, ", "));
  if (format == "list") return List(units, options, program);
  return format == "ninja" ? Ninja(units, options, program) : Bazel(units, options);
}

}  // namespace mlc::driver
