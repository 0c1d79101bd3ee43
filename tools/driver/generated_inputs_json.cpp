#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/json_results.h"
#include "tools/driver/model_interface.h"

namespace mlc::driver {

std::string GeneratedInputsJson(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto& [name, range] : made) {
    Json entry{{"name", InputNameOf(function, name)}, {"values", Describe(range)}};
    if (std::isfinite(range.low)) entry["low"] = range.low;
    if (std::isfinite(range.high)) entry["high"] = range.high;
    if (!range.why.empty()) entry["because"] = range.why;
    list.push_back(std::move(entry));
  }
  return JsonText(Json{{"function", function.name},
                       {"seed", options.seed},
                       {"samples", samples},
                       {"inputs", list}},
                  -1, BadUtf8::kReplace);
}

}  // namespace mlc::driver
