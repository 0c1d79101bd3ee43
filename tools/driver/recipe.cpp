#include "tools/driver/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <manifests/recipe_schema.inc>  // kRecipeSchema, the text of manifests/recipe.schema.json
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

struct Violation {
  std::string at, text;
};

bool IsType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  MLC_CHECK(type == "integer", "the schema has the type {}", type);
  return value.is_number_integer();
}

std::string Shown(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = value.dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// Implements the subset of JSON Schema (draft 2020-12) that manifests/recipe.schema.json uses.
void Validate(const Json& value, const Json& schema, const Json& root, const std::string& at,
              std::vector<Violation>& found) {
  auto bad = [&](std::string text) { found.push_back({at, std::move(text)}); };
  if (schema.contains("$ref")) {
    std::string pointer = schema.at("$ref").get<std::string>().substr(1);
    return Validate(value, root.at(Json::json_pointer(pointer)), root, at, found);
  }
  for (const auto& [keyword, rule] : schema.items()) {
    if (keyword == "type") {
      std::vector<std::string> types =
          rule.is_string() ? std::vector<std::string>{rule} : rule.get<std::vector<std::string>>();
      if (std::ranges::none_of(types, [&](const std::string& type) { return IsType(value, type); }))
        return bad(fmt::format("is {}, not of type {}", Shown(value), fmt::join(types, " or ")));
    } else if (keyword == "pattern") {
      constexpr size_t kLongest = 4096;  // std::regex is recursive
      if (value.is_string() && value.get_ref<const std::string&>().size() > kLongest)
        bad(fmt::format("is longer than {} bytes", kLongest));
      else if (value.is_string() &&
               !std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())))
        bad(fmt::format("{} does not match {}", Shown(value), rule.get<std::string>()));
    } else if (keyword == "minimum") {
      if (value.is_number() && value < rule)
        bad(fmt::format("is {}, below {}", JsonText(value), JsonText(rule)));
    } else if (keyword == "maximum") {
      if (value.is_number() && value > rule)
        bad(fmt::format("is {}, above {}", JsonText(value), JsonText(rule)));
    } else if (keyword == "minItems") {
      if (value.is_array() && value.size() < rule.get<size_t>())
        bad(fmt::format("has fewer than {} items", JsonText(rule)));
    } else if (keyword == "items") {
      for (size_t i = 0; value.is_array() && i < value.size(); ++i)
        Validate(value[i], rule, root, fmt::format("{}[{}]", at, i), found);
    } else if (keyword == "required") {
      for (const Json& name : rule)
        if (value.is_object() && !value.contains(name.get<std::string>()))
          bad(fmt::format("lacks \"{}\"", name.get<std::string>()));
    } else if (keyword == "minProperties") {
      if (value.is_object() && value.size() < rule.get<size_t>())
        bad(fmt::format("has fewer than {} members", JsonText(rule)));
    } else if (keyword == "additionalProperties" || keyword == "properties") {
      if (!value.is_object() ||
          (keyword == "additionalProperties" && rule.is_boolean() && rule.get<bool>()))
        continue;
      const Json none = Json::object();
      const Json& named = schema.contains("properties") ? schema.at("properties") : none;
      for (const auto& [name, member] : value.items()) {
        std::string below = at.empty() ? name : at + "." + name;
        if (named.contains(name)) {
          if (keyword == "properties") Validate(member, named.at(name), root, below, found);
        } else if (keyword == "additionalProperties" && rule.is_boolean()) {
          std::vector<std::string> known;
          for (const auto& [other, unused] : named.items()) known.push_back(other);
          bad(fmt::format("unknown field \"{}\"; known fields: {}", name, fmt::join(known, ", ")));
        } else if (keyword == "additionalProperties") {
          Validate(member, rule, root, below, found);
        }
      }
    } else {
      MLC_CHECK(keyword == "$schema" || keyword == "$defs" || keyword == "title" ||
                    keyword == "description",
                "the schema has the keyword {}", keyword);
    }
  }
}

Error Bad(const fs::path& path, const std::string& at, const std::string& text) {
  return Error("bad-recipe", at.empty() ? text : fmt::format("{}: {}", at, text))
      .At({path.string(), ""})
      .Help("manifests/recipe.schema.json describes the format");
}

// `wanted` is "0.1.3", or "0.1.x" for any with these first numbers.
void RequireVersion(const fs::path& path, const std::string& wanted) {
  const std::string_view given = kVersion;
  const std::string_view first = std::string_view(wanted).substr(0, wanted.size() - 1);
  if (wanted == given || (wanted.ends_with('x') && given.starts_with(first))) return;
  throw Bad(path, "mlc",
            fmt::format("the recipe requires mlc {}, and this is mlc {}", wanted, given));
}

std::map<std::string, std::string> Files(const Json& json) {
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : json.items()) files[name] = file.get<std::string>();
  return files;
}

Recipe::Variant VariantFrom(const Json& json) {
  Recipe::Variant variant;
  variant.name = json.at("name");
  variant.options = json.at("options").get<std::vector<std::string>>();
  if (json.contains("budget"))
    variant.budget =
        json["budget"].is_string() ? json["budget"].get<std::string>() : JsonText(json["budget"]);
  if (json.contains("limits"))
    for (const auto& [what, most] : json["limits"].items()) {
      if (what == "latency_increase_pct")
        variant.latency_increase_pct = most.get<double>();
      else
        variant.limits.emplace_back(what, most.get<double>());
    }
  variant.bundle = json.value("bundle", false);
  variant.parity_bundle = json.value("parity_bundle", false);
  return variant;
}

}  // namespace

Recipe ReadRecipe(const fs::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  constexpr size_t kMostBytes = 16 << 20;
  if (file->bytes().size() > kMostBytes)
    throw Error("resource-limit", "the recipe has {} bytes", file->bytes().size())
        .At({path.string(), ""})
        .Expected("at most {} bytes", kMostBytes);
  RequireJson(AsText(file->bytes()), "bad-recipe", path.string());
  Json json = ParseJson(AsText(file->bytes()));
  static const Json schema = ParseJson(kRecipeSchema);
  std::vector<Violation> found;
  Validate(json, schema, schema, "", found);
  // Violations in a variant affect only that variant; others make the recipe invalid.
  std::vector<Error> errors;
  std::map<size_t, std::vector<Error>> of_variant;
  for (const Violation& violation : found) {
    size_t index = 0;
    if (sscanf(violation.at.c_str(), "variants[%zu]", &index) == 1)
      of_variant[index].push_back(Bad(path, violation.at, violation.text));
    else
      errors.push_back(Bad(path, violation.at, violation.text));
  }
  if (!errors.empty()) throw Errors(std::move(errors));

  if (json.contains("mlc")) RequireVersion(path, json["mlc"]);
  Recipe recipe{.file = path, .folder = path.parent_path(), .name = json.at("name")};
  const Json &source = json.at("source"), &check = json.at("check");
  recipe.source = source.at("path");
  recipe.sha256 = source.at("sha256");
  recipe.data_root = source.value("data_root", "");
  recipe.inputs = Files(check.at("inputs"));
  if (check.contains("reference")) recipe.reference = Files(check.at("reference"));
  if (check.contains("accuracy")) {
    const Json& accuracy = check.at("accuracy");
    recipe.accuracy = {accuracy.at("output"), accuracy.at("labels"), accuracy.at("expected"),
                       accuracy.value("tolerance", 0.0)};
    double expected = recipe.accuracy->expected;
    if (recipe.accuracy->tolerance >= std::max(expected, 1 - expected))
      throw Bad(path, "check.accuracy.tolerance",
                fmt::format("a tolerance of {} around {} accepts any accuracy",
                            recipe.accuracy->tolerance, expected));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < json["variants"].size(); ++i) {
    const Json& given = json["variants"][i];
    Recipe::Variant variant;
    if (auto it = of_variant.find(i); it != of_variant.end()) {
      variant.errors = it->second;
      variant.name = given.is_object() && given.contains("name") && given["name"].is_string()
                         ? given["name"].get<std::string>()
                         : fmt::format("variants[{}]", i);
    } else {
      variant = VariantFrom(given);
    }
    if (!names.insert(variant.name).second)
      throw Bad(path, "variants", fmt::format("duplicate name \"{}\"", variant.name));
    variant.name = recipe.name + "-" + variant.name;
    recipe.variants.push_back(std::move(variant));
  }
  return recipe;
}

}  // namespace mlc::driver
