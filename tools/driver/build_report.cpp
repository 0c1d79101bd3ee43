// The result of a build as a whole: its exit code, counts, JSON and grouped messages.
#include <algorithm>
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

namespace {

class Groups {
 public:
  void Add(const std::string& variant, const Error& error) {
    const auto same = [&](const Found& found) {
      return found.first->id() == error.id() && found.first->text() == error.text();
    };
    auto found = std::ranges::find_if(found_, same);
    if (found == found_.end()) {
      found_.push_back({&error});
      found = found_.end() - 1;
    }
    if (found->variants.empty() || found->variants.back() != variant)
      found->variants.push_back(variant);
    if (found->variants.size() == 1) ++found->places;
  }

  std::vector<MessageGroup> Finish() const {
    std::vector<MessageGroup> groups;
    for (const Found& found : found_) {
      groups.push_back({*found.first, found.variants});
      if (found.places > 1)
        groups.back().first.Note("the first of {} places in the model", found.places);
    }
    return groups;
  }

 private:
  struct Found {
    const Error* first;
    int places = 0;  // in the first variant
    std::vector<std::string> variants = {};
  };
  std::vector<Found> found_;
};

}  // namespace

std::vector<MessageGroup> GroupErrors(const BuildReport& report) {
  Groups groups;
  ForEachError(report,
               [&](const std::string& recipe, const std::string& variant, const Error& error) {
                 groups.Add(variant.empty() ? recipe : variant, error);
               });
  return groups.Finish();
}

std::vector<MessageGroup> GroupWarnings(const BuildReport& report) {
  Groups groups;
  for (const BuildReport::Recipe& recipe : report.recipes)
    for (const BuildRecord& record : recipe.variants)
      if (record.status != Status::kUpToDate)
        for (const Error& warning : record.warnings) groups.Add(record.name, warning);
  return groups.Finish();
}

}  // namespace mlc::driver
