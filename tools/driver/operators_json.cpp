#include <nlohmann/json.hpp>

#include "tools/driver/json_results.h"
#include "tools/driver/operators.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

Json OperatorsJson(const ModelOperators& model) {
  Json json{{"operators", Json::object()}, {"unsupported", Json::array()}};
  for (const ModelOperators::Row& row : model.rows) {
    json["operators"][row.name] = row.nodes;
    if (!row.known) json["unsupported"].push_back(row.name);
  }
  for (const Error& error : model.errors) json["errors"].push_back(ErrorJson(error));
  return json;
}

}  // namespace mlc::driver
