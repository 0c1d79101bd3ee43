#include <nlohmann/json.hpp>

#include "lib/analysis/cost.h"
#include "lib/coreml/interface_entry.h"
#include "tools/driver/inspect.h"
#include "tools/driver/json_results.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

// Also formats a classifier's dictionary and a state.
std::string TypeText(const Type& type) {
  if (type.kind == Type::Kind::kState) return TypeText(type.elements[0]);
  return std::string(type.is_tensor() ? Name(type.dtype) : "dict");
}

std::vector<const Value*> StateValues(const Function& function) {
  std::vector<const Value*> states;
  for (const auto& input : function.body.inputs)
    if (input->type.kind == Type::Kind::kState) states.push_back(input.get());
  return states;
}

namespace {
Json PortJson(const Port& port, const Value& value) {
  Json shape = Json::array();
  for (const Dim& dim : value.type.shape)
    dim.is_constant() ? shape.push_back(dim.constant()) : shape.push_back(dim.ToString());
  Json json{{"name", port.source_name.empty() ? value.name : port.source_name},
            {"mil_name", value.name},
            {"dtype", TypeText(value.type)},
            {"shape", shape}};
  if (port.source_dtype != DType::kNone) json["source_dtype"] = Name(port.source_dtype);
  if (port.feature != Port::Feature::kMultiArray) json["image"] = coreml::ImageName(port.feature);
  if (!port.description.empty()) json["description"] = port.description;
  if (!port.shape_range.empty()) json["shape_range"] = port.shape_range;
  if (!port.enumerated_shapes.empty()) json["enumerated_shapes"] = port.enumerated_shapes;
  if (port.optional) json["optional"] = true;
  if (port.default_value) json["default_value"] = *port.default_value;
  return json;
}
}  // namespace

Json InterfaceJson(const Function& function) {
  Json json;
  for (const char* kind : {"inputs", "outputs", "states"}) json[kind] = Json::array();
  for (const auto& [port, value] : InputPorts(function))
    json["inputs"].push_back(PortJson(port, value));
  for (size_t i = 0; i < function.outputs.size(); ++i)
    json["outputs"].push_back(PortJson(function.outputs[i], *function.body.outputs()[i]));
  for (const Value* state : StateValues(function)) {
    const Type& type = state->type.elements[0];
    json["states"].push_back(
        {{"name", state->name}, {"dtype", Name(type.dtype)}, {"shape", StaticDims(type.shape)}});
  }
  for (const std::string& name : analysis::InputSymbols(function)) {
    const Symbol& symbol = function.symbols.at(name);
    json["symbols"][name] = {{"low", symbol.low}, {"high", symbol.high}};
    if (!symbol.enumerated.empty()) json["symbols"][name]["sizes"] = symbol.enumerated;
  }
  if (std::vector<std::string> labels = ClassLabels(function); !labels.empty())
    json["labels"] = labels;
  return json;
}

Json ProgramJson(const Program& program) {
  Json json = InterfaceJson(*program.main());
  json["functions"] = Json::array();
  for (const auto& function : program.functions) {
    Json one{{"name", function->name}, {"target", TargetName(function->opset)}};
    one.update(InterfaceJson(*function));
    one["operators"] = OperatorsOf(*function);
    json["functions"].push_back(std::move(one));
  }
  if (program.functions.size() > 1) json["default_function"] = program.main()->name;
  return json;
}

}  // namespace mlc::driver
