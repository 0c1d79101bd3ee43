#include "tools/mlc/made_up.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace mlc {

namespace {
const std::string& NameOfInput(const Function& function, const std::string& name) {
  for (const Port& port : function.inputs)
    if (port.name == name && !port.source_name.empty()) return port.source_name;
  return name;
}
}  // namespace

std::string MadeUpText(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples) {
  constexpr size_t kShown = 12;
  if (made.empty()) return "";
  std::string text = fmt::format("inputs made up from seed {}, {} sample{}:\n", options.seed,
                                 samples, samples == 1 ? "" : "s");
  size_t shown = 0;
  for (const auto& [name, range] : made) {
    if (++shown > kShown) break;
    text += fmt::format("  {}: {}{}\n", NameOfInput(function, name), Describe(range),
                        range.why.empty() ? "" : fmt::format(" ({})", range.why));
  }
  if (made.size() > kShown) text += fmt::format("  and {} more\n", made.size() - kShown);
  return text;
}

std::string MadeUpJson(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto& [name, range] : made) {
    Json entry{{"name", NameOfInput(function, name)}, {"values", Describe(range)}};
    if (std::isfinite(range.low)) entry["low"] = range.low;
    if (std::isfinite(range.high)) entry["high"] = range.high;
    if (!range.why.empty()) entry["because"] = range.why;
    list.push_back(std::move(entry));
  }
  return Json{
      {"function", function.name}, {"seed", options.seed}, {"samples", samples}, {"inputs", list}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mlc
