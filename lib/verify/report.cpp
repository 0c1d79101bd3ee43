#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "lib/support/json_text.h"
#include "lib/verify/compare_functions.h"

namespace mlc::verify {

namespace {

using Json = nlohmann::ordered_json;

// The effective limits.
Json ToJson(const Budget& budget) {
  if (budget.elementwise())
    return {{"atol", budget.atol.value_or(0)}, {"rtol", budget.rtol.value_or(0)}};
  return {{"max_error", NumberJson(budget.max_error)},
          {"rmse", NumberJson(budget.rmse)},
          {"unequal", budget.unequal}};
}

void BudgetFrom(const Json& json, Budget& budget) {
  if (json.contains("atol")) {
    budget.atol = json.at("atol").get<double>();
    budget.rtol = json.at("rtol").get<double>();
  } else {
    budget.max_error = NumberFromJson(json.at("max_error"));
    budget.rmse = NumberFromJson(json.at("rmse"));
    budget.unequal = json.at("unequal");
  }
}

Json ToJson(const Compared& compared) {
  const Comparison& c = compared.comparison;
  Json json{{"name", compared.name},
            {"function", compared.function},
            {"step", compared.step},
            {"kind", compared.state ? "state" : "output"},
            {"max_error", NumberJson(c.max_error)},
            {"rmse", NumberJson(c.rmse)},
            {"discriminating", c.discriminating},
            {"within", compared.within},
            {"exceeds", compared.exceeds},
            {"tells", compared.tells},
            {"budget", ToJson(compared.budget.Allowed())}};
  if (compared.budget.floor) json["floor"] = ParseJson(ToJson(*compared.budget.floor));
  json["dims"] = c.dims;
  if (c.exact) json["equal_fraction"] = c.equal_fraction;
  if (!c.mismatch.empty()) json["mismatch"] = c.mismatch;
  if (c.worst_index >= 0)
    json["worst"] = {{"index", c.worst_index},
                     {"position", c.worst_position()},
                     {"value", NumberJson(c.worst_value)},
                     {"reference", NumberJson(c.worst_reference)}};
  if (c.beyond > 0) json["outside_atol_rtol"] = c.beyond;
  if (compared.ties > 0) json["ties"] = compared.ties;
  if (compared.hidden)
    json["hidden"] = {{"axis", compared.hidden->axis},
                      {"slice", compared.hidden->slice},
                      {"ratio", NumberJson(compared.hidden->ratio)},
                      {"max_error", NumberJson(compared.hidden->max_error)},
                      {"rmse", NumberJson(compared.hidden->rmse)}};
  return json;
}

}  // namespace

bool Worse(const Compared& a, const Compared& b) {
  auto rank = [](const Compared& c) { return !c.tells ? 0 : c.within ? 1 : 2; };
  if (rank(a) != rank(b)) return rank(a) > rank(b);
  if (a.comparison.max_error != b.comparison.max_error)
    return a.comparison.max_error > b.comparison.max_error;
  return a.ties > b.ties;
}

std::vector<Steps> WorstSteps(const std::vector<Compared>& list) {
  std::vector<Steps> all;
  std::map<std::tuple<std::string_view, std::string_view, bool>, size_t> places;
  for (const Compared& compared : list) {
    auto [it, first] =
        places.try_emplace({compared.function, compared.name, compared.state}, all.size());
    if (first) all.push_back({&compared, 0});
    Steps& steps = all[it->second];
    ++steps.count;
    if (Worse(compared, *steps.worst)) steps.worst = &compared;
  }
  return all;
}

std::string WhyItTellsNothing(const Compared& compared) {
  const Comparison& c = compared.comparison;
  if (compared.tells) return "";
  if (!c.discriminating)
    return c.dims.empty() || ElementCount(c.dims) ? "not discriminating: the reference is constant"
                                                  : "not discriminating: the reference is empty";
  return "not comparable: fp16 constants alone cause errors of this size";
}

std::string ReportText(const std::vector<Compared>& list) {
  std::string text, function;
  bool several = std::ranges::any_of(
      list, [&](const Compared& compared) { return compared.function != list[0].function; });
  for (const auto& [worst, steps] : WorstSteps(list)) {
    if (several && function != worst->function)
      text += fmt::format("function {}:\n", worst->function);
    function = worst->function;
    const Comparison& c = worst->comparison;
    std::string floor = DescribeFloor(worst->budget, c);
    text += fmt::format("{:<4} {:<32} {}{}{}{}\n",
                        !worst->tells    ? "-"
                        : worst->exceeds ? "over"
                        : worst->within  ? "ok"
                                         : "FAIL",
                        (worst->state ? "state " : "") + worst->name, Describe(c),
                        steps > 1 ? fmt::format(" (step {} of {})", worst->step + 1, steps) : "",
                        floor.empty() ? "" : "; " + floor,
                        worst->tells ? "" : fmt::format("  ({})", WhyItTellsNothing(*worst)));
    if (worst->ties > 0)
      text += fmt::format("     {} of {} elements differ by one quantisation step (ties)\n",
                          worst->ties, ElementCount(c.dims));
    if (worst->hidden) text += fmt::format("     {}\n", Describe(*worst->hidden));
  }
  return text;
}

std::string VerdictText(const std::vector<Compared>& list) {
  switch (Judge(list)) {
    case Verdict::kPassed:
      return std::ranges::any_of(list, [](const Compared& compared) { return compared.exceeds; })
                 ? "PASSED, exceeds the budget as stated in the manifest"
                 : "PASSED";
    case Verdict::kFailed:
      return "FAILED";
    case Verdict::kNothingCompared:
      break;
  }
  std::set<std::string> functions, telling;
  for (const Compared& compared : list) {
    functions.insert(compared.function);
    if (compared.tells) telling.insert(compared.function);
  }
  std::string silent;
  for (const std::string& function : functions)
    if (!telling.contains(function)) silent += (silent.empty() ? "" : ", ") + function;
  return fmt::format("FAILED: no output{} is conclusive, so nothing was compared; try other inputs",
                     functions.size() > 1 ? " of " + silent : "");
}

std::string ReportJson(const std::vector<Compared>& list) {
  Json json = Json::array();
  for (const Compared& compared : list) json.push_back(ToJson(compared));
  return JsonText(json, -1, BadUtf8::kReplace);
}

std::vector<Compared> ReportFromJson(std::string_view text) {
  std::vector<Compared> list;
  for (const Json& json : ParseJson(text)) {
    Compared& compared = list.emplace_back();
    compared.function = json.at("function");
    compared.name = json.at("name");
    compared.state = json.at("kind") == "state";
    compared.step = json.at("step");
    compared.within = json.at("within");
    compared.tells = json.at("tells");
    compared.exceeds = json.value("exceeds", false);
    BudgetFrom(json.at("budget"), compared.budget);
    if (json.contains("floor")) compared.budget.floor = FloorFromJson(JsonText(json.at("floor")));
    Comparison& c = compared.comparison;
    c.dims = json.at("dims").get<Dims>();
    c.max_error = NumberFromJson(json.at("max_error"));
    c.rmse = NumberFromJson(json.at("rmse"));
    c.discriminating = json.at("discriminating");
    c.exact = json.contains("equal_fraction");
    if (c.exact) c.equal_fraction = json.at("equal_fraction");
    c.mismatch = json.value("mismatch", "");
    c.beyond = json.value("outside_atol_rtol", int64_t{0});
    compared.ties = json.value("ties", int64_t{0});
    if (json.contains("worst")) {
      const Json& worst = json.at("worst");
      c.worst_index = worst.at("index");
      c.worst_value = NumberFromJson(worst.at("value"));
      c.worst_reference = NumberFromJson(worst.at("reference"));
    }
    if (json.contains("hidden")) {
      const Json& hidden = json.at("hidden");
      compared.hidden = {hidden.at("axis"), hidden.at("slice"), NumberFromJson(hidden.at("ratio")),
                         NumberFromJson(hidden.at("max_error")), NumberFromJson(hidden.at("rmse"))};
    }
  }
  return list;
}

}  // namespace mlc::verify
