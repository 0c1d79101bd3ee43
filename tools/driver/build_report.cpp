// What a build as a whole came to.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/driver/build.h"
#include "tools/driver/json_results.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;
using Status = BuildRecord::Status;

int BuildReport::exit_code() const {
  int code = 0;
  for (const Recipe& recipe : recipes) {
    for (const Error& error : recipe.errors) code = std::max(code, ExitCode(error.id()));
    for (const BuildRecord& record : recipe.variants) code = std::max(code, record.exit_code());
  }
  return code;
}

int BuildReport::Count(Status status) const {
  int count = 0;
  for (const Recipe& recipe : recipes) {
    // A recipe that cannot be read has at least one variant.
    if (status == Status::kNotBuilt && recipe.variants.empty() && !recipe.errors.empty()) ++count;
    count += static_cast<int>(std::ranges::count(recipe.variants, status, &BuildRecord::status));
  }
  return count;
}

namespace {

// Calls fn(recipe, variant, error) for each error; `variant` is empty for those of a recipe.
template <class Fn>
void ForEachError(const BuildReport& report, Fn&& fn) {
  for (const BuildReport::Recipe& recipe : report.recipes) {
    for (const Error& error : recipe.errors) fn(recipe.path, "", error);
    if (recipe.errors.empty())
      for (const BuildRecord& record : recipe.variants)
        for (const Error& error : record.errors) fn(recipe.path, record.name, error);
  }
}

}  // namespace

Json BuildReportJson(const BuildReport& report) {
  Json recipes = Json::array(), errors = recipes, counts = Json::object();
  for (const BuildReport::Recipe& recipe : report.recipes) {
    Json json{{"recipe", recipe.path}, {"variants", Json::array()}};
    for (const BuildRecord& record : recipe.variants)
      json["variants"].push_back(BuildRecordJson(record));
    for (const Error& error : recipe.errors) json["errors"].push_back(ErrorJson(error));
    recipes.push_back(std::move(json));
  }
  ForEachError(report,
               [&](const std::string& recipe, const std::string& variant, const Error& error) {
                 Json json = ErrorJson(error);
                 json["recipe"] = recipe;
                 if (!variant.empty()) json["variant"] = variant;
                 errors.push_back(std::move(json));
               });
  for (Status status : {Status::kPassed, Status::kFailed, Status::kNotBuilt, Status::kUpToDate})
    counts[std::string(Name(status))] = report.Count(status);
  Json json{{"ok", report.exit_code() == 0},
            {"recipes", std::move(recipes)},
            {"counts", counts},
            {"seconds", report.seconds}};
  if (report.dry_run) json["dry_run"] = true;
  for (const Error& warning : report.warnings) json["warnings"].push_back(ErrorJson(warning));
  if (!errors.empty()) json["errors"] = std::move(errors);
  return json;
}

std::vector<ErrorGroup> GroupErrors(const BuildReport& report) {
  struct Found {
    const Error* first;
    int places = 0;  // of the first variant
    std::vector<std::string> variants;
  };
  std::vector<std::pair<std::array<std::string, 2>, Found>> groups;
  ForEachError(report,
               [&](const std::string& recipe, const std::string& variant, const Error& error) {
                 const std::array<std::string, 2> key{error.id(), error.text()};
                 auto group = std::ranges::find(groups, key, &decltype(groups)::value_type::first);
                 if (group == groups.end()) {
                   groups.push_back({key, {&error}});
                   group = groups.end() - 1;
                 }
                 Found& found = group->second;
                 const std::string& name = variant.empty() ? recipe : variant;
                 if (found.variants.empty() || found.variants.back() != name)
                   found.variants.push_back(name);
                 if (found.variants.size() == 1) ++found.places;
               });
  std::vector<ErrorGroup> result;
  for (const auto& [key, found] : groups) {
    ErrorGroup group{*found.first, found.variants};
    if (found.places > 1) group.error.Note("the first of {} places in the model", found.places);
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace mlc::driver
