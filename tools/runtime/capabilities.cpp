// The operators of the builder.
#include <nlohmann/json.hpp>

#include "lib/ops/row.h"
#include "tools/runtime/call.h"
#include "tools/runtime/composites.h"

using namespace mlc;
using namespace mlc::abi;
using Json = nlohmann::ordered_json;

namespace {

Json ParameterJson(const Param& param) {
  Json json{{"name", param.name},
            {"required", param.default_kind == Param::Default::kRequired && !param.variadic}};
  if (param.is_const) json["constant"] = true;
  if (param.variadic) json["several"] = true;
  if (param.domain) json["domain"] = std::string(1, param.domain);
  for (int i = 1; i < kDTypeCount; ++i)
    if (Contains(param.types, static_cast<DType>(i)))
      json["types"].push_back(Name(static_cast<DType>(i)));
  if (param.default_kind == Param::Default::kLiteral) json["default"] = param.default_text;
  return json;
}

}  // namespace

int32_t mlc_capabilities(char** result, mlc_error** error) {
  return Call(error, [&] {
    Json list = Json::array();
    for (const OpDef& def : Ops().all()) {
      if (def.is_const()) continue;
      Json row{{"name", def.name},
               {"class", "direct"},
               {"since", TargetName(def.forms.front().since)},
               {"summary", def.doc},
               {"parameters", Json::array()}};
      if (def.runs_blocks()) row["blocks"] = 2;
      for (const Param& param : def.canonical().params)
        row["parameters"].push_back(ParameterJson(param));
      list.push_back(std::move(row));
    }
    for (const Composite& composite : Composites()) {
      Json row{{"name", composite.name},
               {"class", "decomposed"},
               {"summary", composite.summary},
               {"parameters", Json::array()}};
      if (!composite.condition.empty()) row["condition"] = composite.condition;
      for (size_t i = 0; i < composite.names().size(); ++i) {
        row["parameters"].push_back(
            {{"name", composite.parameters[i]}, {"required", i < composite.required}});
        if (i == 0 && composite.several) row["parameters"].back()["several"] = true;
      }
      list.push_back(std::move(row));
    }
    for (const Refused& refused : RefusedOperators())
      list.push_back({{"name", refused.name}, {"class", "never"}, {"why", refused.why}});
    StoreResult({{"operators", list}}, result);
  });
}
