#include <nlohmann/json.hpp>

#include "tools/driver/inspect.h"
#include "tools/driver/json_results.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

Json InspectJson(const InspectResult& result, bool weights) {
  const Program& program = *result.program;
  Json json{{"format", result.frontend->name}, {"target", TargetName(result.needed)}};
  json.update(ProgramJson(program));
  json["operators"] = result.operators;
  json["fp16_share"] = result.fp16_share;
  json["weights"] = {{"count", result.weights.size()},
                     {"elements", result.weight_elements},
                     {"bytes", result.weight_bytes},
                     {"bits_per_weight", BitsOf(result.weight_bytes, result.weight_elements)},
                     {"by_dtype", result.weight_bytes_by_dtype}};
  if (weights) {
    Json& tensors = json["weights"]["tensors"] = Json::array();
    for (const analysis::Weight& weight : result.weights) {
      tensors.push_back({{"name", weight.name},
                         {"dtype", Name(weight.dtype)},
                         {"shape", weight.dims},
                         {"bytes", weight.bytes}});
      if (!weight.encoding.empty()) tensors.back()["encoding"] = weight.encoding;
    }
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : program.interface.metadata) metadata[key] = value;
  json["metadata"] = metadata;
  for (const auto& [key, value] : Texts(program.interface)) json[key] = value;
  return json;
}

}  // namespace mlc::driver
