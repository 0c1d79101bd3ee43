#include "lib/coreml/interface_entry.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "lib/ir/port_index.h"
#include "lib/support/json_text.h"
#include "lib/support/utf8.h"

namespace mlc::coreml {

namespace {

using Json = nlohmann::ordered_json;

const std::string& Text(const std::string& name) {
  RequireUtf8(name, "bad-file", "a source name");
  return name;
}

Json ToJson(const Shape& shape) {
  Json dims = Json::array();
  for (const Dim& dim : shape) {
    if (dim.is_constant())
      dims.push_back(dim.constant());
    else
      dims.push_back(Text(dim.ToString()));
  }
  return dims;
}

// An expression becomes a symbol with its text: these names are for readers, and inference
// recomputes the dimensions.
Shape ToShape(const Json& dims) {
  Shape shape;
  for (const Json& dim : dims)
    shape.push_back(dim.is_string() ? Dim::Symbol(dim.get<std::string>())
                                    : Dim(dim.get<int64_t>()));
  return shape;
}

// Returns whether the symbolic dimensions of an input have the names that a reader assigns by
// default.
bool HasDefaultNames(const Value& input) {
  for (size_t d = 0; d < input.type.shape.size(); ++d) {
    const Dim& dim = input.type.shape[d];
    Dim named = Dim::Symbol(OpenDimName(input.name, d));
    if (!dim.is_constant() && !(dim == named) && !(dim == named - 1)) return false;
  }
  return true;
}

// Ports with information beyond the description. `values` (of inputs) may be null.
Json ToJson(const std::vector<Port>& ports, const std::vector<std::unique_ptr<Value>>* values) {
  Json list = Json::array();
  auto add = [&](const std::string& name, const Port* port, const Value* value) {
    Json json;
    json["name"] = name;
    if (port && !port->source_name.empty() && port->source_name != name)
      json["source"] = Text(port->source_name);
    if (port && port->source_dtype != DType::kNone) {
      json["dtype"] = Name(port->source_dtype);
      json["shape"] = ToJson(port->source_shape);
    }
    if (value && value->type.is_tensor() && !HasDefaultNames(*value))
      json["dims"] = ToJson(value->type.shape);
    if (json.size() > 1) list.push_back(std::move(json));
  };
  if (!values) {
    for (const Port& port : ports) add(port.name, &port, nullptr);
    return list;
  }
  const PortIndex by_name(ports);
  for (const auto& value : *values) add(value->name, by_name.Find(value->name), value.get());
  return list;
}

void Apply(const Json& json, std::vector<Port>& ports, const std::string& function,
           InputDims* dims) {
  const PortIndex by_name(ports);
  for (const Json& entry : json) {
    Port* port = by_name.Find(entry.at("name").get_ref<const std::string&>());
    if (!port) continue;
    port->source_name = entry.value("source", port->name);
    if (entry.contains("dtype")) {
      port->source_dtype = ParseDType(entry.at("dtype").get<std::string>()).value_or(DType::kNone);
      port->source_shape = ToShape(entry.at("shape"));
    }
    if (dims && entry.contains("dims")) (*dims)[{function, port->name}] = ToShape(entry.at("dims"));
  }
}

Json ToJson(const std::vector<AbsentInput>& inputs) {
  Json list = Json::array();
  for (const AbsentInput& input : inputs) {
    list.push_back({{"source", Text(input.source_name)}, {"place", input.place}});
    if (input.hash.empty()) continue;
    list.back()["dtype"] = Name(input.dtype);
    list.back()["shape"] = input.dims;
    list.back()["xxh3_128"] = input.hash;
  }
  return list;
}

std::vector<AbsentInput> ToAbsentInputs(const Json& list) {
  std::vector<AbsentInput> inputs;
  for (const Json& entry : list) {
    AbsentInput& input = inputs.emplace_back();
    input.source_name = entry.at("source").get<std::string>();
    input.place = entry.at("place").get<size_t>();
    input.hash = entry.value("xxh3_128", "");
    input.dims = entry.value("shape", Dims());
    input.dtype = ParseDType(entry.value("dtype", "")).value_or(DType::kNone);
  }
  return inputs;
}

Json WeightSources(Function& function) {
  Json::object_t weights;
  ForEachOperation(function, [&](Operation* op) {
    const Tensor::Provenance* from = op->val ? op->val.provenance() : nullptr;
    if (!from || op->val.encoding()) return;
    // The names of a damaged source are no reason to refuse it.
    if (!std::ranges::all_of(from->sources, [](const std::string& name) {
          return FirstBadUtf8(name) == std::string_view::npos;
        }))
      return;
    // Names are unique, which insertion would check by a search.
    weights.push_back(
        {op->result()->name, from->unchanged ? Json(from->sources[0]) : Json(from->sources)});
  });
  return weights;
}

// Calls apply(json) with a parsed entry of the version that mlc writes.
template <class Apply>
void Parse(std::string_view text, Apply apply) {
  try {
    const Json json = ParseJson(text);
    if (json.at("version") == 1) apply(json);
  } catch (const Json::exception& error) {
    throw Error("bad-file", "the metadata entry {} is malformed: {}", kInterfaceKey,
                JsonFault(error.what()));
  }
}

}  // namespace

std::string_view ImageName(Port::Feature feature) {
  switch (feature) {
    case Port::Feature::kMultiArray:
      return "";
    case Port::Feature::kImageRgb:
      return "rgb";
    case Port::Feature::kImageBgr:
      return "bgr";
    case Port::Feature::kImageGray:
      return "gray";
  }
  return "";
}

std::string OpenDimName(std::string_view input, size_t dim) {
  return fmt::format("{}_{}", LegalName(input), dim);
}

std::string InterfaceEntry(const Program& program) {
  Json functions = Json::object();
  for (const auto& function : program.functions) {
    Json json = Json::object();
    auto add = [&](const char* key, Json list) {
      if (!list.empty()) json[key] = std::move(list);
    };
    add("inputs", ToJson(function->inputs, &function->body.inputs));
    add("outputs", ToJson(function->outputs, nullptr));
    add("states", ToJson(function->states, nullptr));
    add("absent_inputs", ToJson(function->absent_inputs));
    if (program.interface.states_sources) json["weights"] = WeightSources(*function);
    if (!json.empty())
      functions[program.functions.size() == 1 ? "main" : function->name] = std::move(json);
  }
  if (functions.empty()) return {};
  return JsonText(Json{{"version", 1}, {"functions", functions}});
}

InputDims ApplyInterfaceEntry(std::string_view text, Program& program) {
  InputDims dims;
  Parse(text, [&](const Json& json) {
    for (const auto& function : program.functions) {
      const Json& functions = json.at("functions");
      if (!functions.contains(function->name)) continue;
      const Json& ports = functions.at(function->name);
      if (ports.contains("inputs"))
        Apply(ports.at("inputs"), function->inputs, function->name, &dims);
      if (ports.contains("outputs"))
        Apply(ports.at("outputs"), function->outputs, function->name, nullptr);
      if (ports.contains("states"))
        Apply(ports.at("states"), function->states, function->name, nullptr);
      if (ports.contains("absent_inputs"))
        function->absent_inputs = ToAbsentInputs(ports.at("absent_inputs"));
    }
  });
  return dims;
}

void ApplyWeightSources(std::string_view text, Program& program) {
  Parse(text, [&](const Json& json) {
    for (const auto& function : program.functions) {
      const Json& functions = json.at("functions");
      if (!functions.contains(function->name) || !functions.at(function->name).contains("weights"))
        continue;
      std::unordered_map<std::string_view, const Json*> weights;
      const Json& object = functions.at(function->name).at("weights");
      for (const auto& [name, sources] : object.get_ref<const Json::object_t&>())
        weights.emplace(name, &sources);
      program.interface.states_sources = true;
      ForEachOperation(*function, [&](Operation* op) {
        const auto entry = op->val ? weights.find(op->result()->name) : weights.end();
        if (entry == weights.end()) return;
        const Json& sources = *entry->second;
        Tensor::Provenance from{{}, sources.is_string()};
        if (from.unchanged)
          from.sources = {sources.get<std::string>()};
        else
          from.sources = sources.get<std::vector<std::string>>();
        op->val = op->val.From(std::move(from));
      });
    }
  });
}

}  // namespace mlc::coreml
