#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/driver/diff.h"
#include "tools/driver/json_results.h"

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

Json OperationJson(const Operation* op) {
  if (!op) return nullptr;
  Json json{{"op", op->def->name}, {"name", NameInDiff(*op)}};
  if (std::string function = FunctionInDiff(*op); !function.empty()) json["function"] = function;
  return json;
}

}  // namespace

Json DiffJson(const DiffResult& result) {
  const verify::ProgramDiff& diff = result.found;
  Json operations = Json::array(), weights = Json::array();
  for (const verify::OperationPair& pair : diff.operations)
    operations.push_back({{"first", OperationJson(pair.a)},
                          {"second", OperationJson(pair.b)},
                          {"changes", pair.changes}});
  for (const verify::WeightPair& weight : diff.weights) {
    double difference = weight.largest_difference;
    weights.push_back({{"operation", NameInDiff(*weight.a)},
                       {"parameter", weight.param},
                       {"state", StateText(weight.state)},
                       {"largest_difference", std::isfinite(difference) ? Json(difference) : "inf"},
                       {"bytes", {weight.bytes_a, weight.bytes_b}}});
    if (std::string function = FunctionInDiff(*weight.a); !function.empty())
      weights.back()["function"] = function;
  }
  return {{"same", diff.same()},
          {"interface", diff.interface},
          {"matched_operations", diff.matched},
          {"operations", operations},
          {"weights", weights}};
}

}  // namespace mlc::driver
