#include "tools/mlc/interface_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/analysis/cost.h"
#include "lib/coreml/interface_entry.h"
#include "tools/driver/inspect.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

// Suffix of an input's shape: its open sizes, or the shapes if a package enumerates several.
std::string SizesText(const Function& function, const Port& port, const Shape& shape) {
  if (port.enumerated_shapes.size() > 1 && port.enumerated_shapes[0].size() > 1)
    return ", one of " + ShapesText(port);
  std::string text;
  for (const Dim& dim : shape)
    if (std::string sizes = driver::SizesText(function, dim); !sizes.empty()) text += ", " + sizes;
  return text;
}

// Also formats a classifier's dictionary and a state.
std::string TypeText(const Type& type) {
  if (type.kind == Type::Kind::kState) return TypeText(type.elements[0]);
  return std::string(type.is_tensor() ? Name(type.dtype) : "dict");
}

const Shape& ShapeOf(const Type& type) {
  return type.kind == Type::Kind::kState ? type.elements[0].shape : type.shape;
}

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

std::vector<const Value*> StateValues(const Function& function) {
  std::vector<const Value*> states;
  for (const auto& input : function.body.inputs)
    if (input->type.kind == Type::Kind::kState) states.push_back(input.get());
  return states;
}

}  // namespace

std::string ShownName(const Port& port) {
  if (port.source_name.empty() || port.source_name == port.name) return port.name;
  return fmt::format("{} (from \"{}\")", port.name, port.source_name);
}

std::string InterfaceText(const Function& function, size_t most) {
  std::string text;
  auto ports = [&](std::string_view title, const std::vector<Port>& list, auto value_of) {
    size_t width = 24;
    for (size_t i = 0; i < std::min(most, list.size()); ++i)
      width = std::clamp(ShownName(list[i]).size(), width, size_t{48});
    for (size_t i = 0; i < std::min(most, list.size()); ++i) {
      const Port& port = list[i];
      const Value& value = value_of(i);
      bool image = port.feature != Port::Feature::kMultiArray;
      text += fmt::format("{:<11}{:<{}} {:<6} {}{}{}{}\n", i == 0 ? title : "", ShownName(port),
                          width, TypeText(value.type), ToString(ShapeOf(value.type)),
                          image ? fmt::format(" {}{} image", coreml::ImageName(port.feature),
                                              port.dtype == DType::kFp16 ? " float16" : "")
                                : "",
                          title == "inputs" ? SizesText(function, port, value.type.shape) : "",
                          port.optional ? ", optional" : "");
    }
    if (list.size() > most) text += fmt::format("{:<11}... {} more\n", "", list.size() - most);
  };
  std::vector<const Value*> inputs = InputValues(function), states = StateValues(function);
  ports("inputs", function.inputs, [&](size_t i) -> const Value& { return *inputs[i]; });
  ports("outputs", function.outputs,
        [&](size_t i) -> const Value& { return *function.body.outputs()[i]; });
  ports("states", function.states, [&](size_t i) -> const Value& { return *states[i]; });
  constexpr size_t kShown = 20;
  if (std::vector<std::string> labels = ClassLabels(function); !labels.empty()) {
    size_t shown = std::min(kShown, labels.size());
    text += fmt::format(
        "{:<11}{}: {}{}\n", "labels", labels.size(),
        fmt::join(labels.begin(), labels.begin() + static_cast<ptrdiff_t>(shown), ", "),
        shown < labels.size() ? fmt::format(", ... {} more (--json has all)", labels.size() - shown)
                              : "");
  }
  return text;
}

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
