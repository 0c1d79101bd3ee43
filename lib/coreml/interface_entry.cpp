#include "lib/coreml/interface_entry.h"

#include <nlohmann/json.hpp>

namespace mlc {

namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Shape& shape) {
  Json dims = Json::array();
  for (const Dim& dim : shape) {
    if (dim.is_constant())
      dims.push_back(dim.constant());
    else
      dims.push_back(dim.ToString());
  }
  return dims;
}

// Expressions become a symbol of that text: they are for people, inference computes dimensions
// again.
Shape ToShape(const Json& dims) {
  Shape shape;
  for (const Json& dim : dims)
    shape.push_back(dim.is_string() ? Dim::Symbol(dim.get<std::string>())
                                    : Dim(dim.get<int64_t>()));
  return shape;
}

Json ToJson(const Port& port, const Value* value) {
  Json json{{"name", port.name}, {"source", port.source_name}};
  if (port.source_dtype != DType::kNone) {
    json["dtype"] = Name(port.source_dtype);
    json["shape"] = ToJson(port.source_shape);
  }
  if (value && value->type.is_tensor() && !IsStatic(value->type.shape))
    json["dims"] = ToJson(value->type.shape);
  return json;
}

Json ToJson(const std::vector<Port>& ports, const Function& function, bool with_dims,
            bool& says_more) {
  Json json = Json::array();
  for (const Port& port : ports) {
    const Value* value = nullptr;
    for (const auto& input : function.body.inputs)
      if (with_dims && input->name == port.name) value = input.get();
    json.push_back(ToJson(port, value));
    says_more = says_more || (!port.source_name.empty() && port.source_name != port.name) ||
                port.source_dtype != DType::kNone || json.back().contains("dims");
  }
  return json;
}

void Apply(const Json& json, std::vector<Port>& ports, const std::string& function,
           InputDims* dims) {
  for (const Json& entry : json) {
    for (Port& port : ports) {
      if (port.name != entry.at("name").get<std::string>()) continue;
      port.source_name = entry.at("source").get<std::string>();
      if (entry.contains("dtype")) {
        port.source_dtype = ParseDType(entry.at("dtype").get<std::string>()).value_or(DType::kNone);
        port.source_shape = ToShape(entry.at("shape"));
      }
      if (dims && entry.contains("dims"))
        (*dims)[{function, port.name}] = ToShape(entry.at("dims"));
    }
  }
}

}  // namespace

std::string InterfaceEntry(const Program& program) {
  bool says_more = false;
  Json functions = Json::object();
  for (const auto& function : program.functions) {
    Json& json = functions[program.functions.size() == 1 ? "main" : function->name];
    json["inputs"] = ToJson(function->inputs, *function, true, says_more);
    json["outputs"] = ToJson(function->outputs, *function, false, says_more);
    json["states"] = ToJson(function->states, *function, false, says_more);
  }
  if (!says_more) return {};
  // Names of a source need not be UTF-8.
  return Json{{"version", 1}, {"functions", functions}}.dump(-1, ' ', false,
                                                             Json::error_handler_t::replace);
}

InputDims ApplyInterfaceEntry(std::string_view text, Program& program) {
  InputDims dims;
  try {
    Json json = Json::parse(text);
    if (json.at("version") != 1) return dims;
    for (const auto& function : program.functions) {
      const Json& functions = json.at("functions");
      if (!functions.contains(function->name)) continue;
      const Json& ports = functions.at(function->name);
      Apply(ports.at("inputs"), function->inputs, function->name, &dims);
      Apply(ports.at("outputs"), function->outputs, function->name, nullptr);
      Apply(ports.at("states"), function->states, function->name, nullptr);
    }
  } catch (const Json::exception& error) {
    throw Error("bad-file",
                fmt::format("the metadata entry {} is damaged: {}", kInterfaceKey, error.what()));
  }
  return dims;
}

}  // namespace mlc
