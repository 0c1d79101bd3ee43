#include <nlohmann/json.hpp>

#include "lib/coreml/bundle.h"
#include "lib/coreml/interface_entry.h"
#include "lib/ir/text.h"
#include "lib/passes/pass.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/model.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> ShapeText(const Shape& shape) {
  std::vector<std::string> out;
  for (const Dim& dim : shape) out.push_back(dim.ToString());
  return out;
}

// ", x_2 in 1..64, n in 8|16": the sizes that the symbols of a shape may have, and shapes where a
// package lists whole ones.
std::string SizesText(const Program& program, const Port& port, const Shape& shape) {
  std::string text;
  if (port.enumerated_shapes.size() > 1 && port.enumerated_shapes[0].size() > 1) {
    for (const Dims& dims : port.enumerated_shapes)
      text += fmt::format("{}[{}]", text.empty() ? ", one of " : " ", fmt::join(dims, ", "));
    return text;
  }
  for (const Dim& dim : shape) {
    auto it = program.symbols.find(dim.symbol().value_or(""));
    if (it == program.symbols.end() || it->second.definition) continue;
    const Symbol& symbol = it->second;
    std::string sizes =
        symbol.enumerated.empty()
            ? fmt::format("{}..{}", symbol.low,
                          symbol.high >= INT32_MAX ? "" : std::to_string(symbol.high))
            : fmt::format("{}", fmt::join(symbol.enumerated, "|"));
    text += fmt::format(", {} in {}", it->first, sizes);
  }
  return text;
}

// Of a classifier's dictionary too.
std::string TypeText(const Type& type) {
  return std::string(type.is_tensor() ? Name(type.dtype) : "dict");
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
  if (port.feature != Port::Feature::kMultiArray) json["image"] = ImageName(port.feature);
  if (!port.description.empty()) json["description"] = port.description;
  if (!port.shape_range.empty()) json["shape_range"] = port.shape_range;
  if (!port.enumerated_shapes.empty()) json["enumerated_shapes"] = port.enumerated_shapes;
  if (port.optional) json["optional"] = true;
  if (port.default_value) json["default_value"] = *port.default_value;
  return json;
}

struct WeightSummary {
  int64_t count = 0, elements = 0;
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> by_dtype;
};

WeightSummary Weights(const Program& program, Json* each) {
  WeightSummary summary;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!op->is("const") || op->val.dtype() == DType::kString || op->val.size() < 10) return;
      ++summary.count;
      summary.elements += op->val.size();
      summary.bytes += op->val.byte_size();
      summary.by_dtype[std::string(Name(op->val.dtype()))] += op->val.byte_size();
      if (each)
        each->push_back({{"name", op->name},
                         {"dtype", Name(op->val.dtype())},
                         {"shape", op->val.dims()},
                         {"bytes", op->val.byte_size()}});
    });
  return summary;
}

// Author and so on, those that are there.
std::vector<std::pair<std::string, std::string>> Texts(const Interface& interface) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"author", interface.author},
      {"license", interface.license},
      {"description", interface.short_description},
      {"version", interface.version}};
  std::erase_if(texts, [](const auto& text) { return text.second.empty(); });
  return texts;
}

int Inspect(const Invocation& invocation) {
  std::filesystem::path path = invocation.get("ANY");
  Format format = DetectFormat(path);
  Program program = ImportModel(path, ImportOptions(invocation), invocation.diagnostics);
  if (invocation.has("--mil")) {
    // A source model has no text of Core ML's yet.
    std::string text = format == Format::kOnnx
                           ? PrintText(program, {.inline_limit = 4, .max_elements = 32}) + "\n"
                           : BundleText(program, ModelFolder(path),
                                        BundleVersion(invocation, "--compiler-version"),
                                        BundleVersion(invocation, "--mil-version"));
    if (invocation.json())
      text = Json{{"format", Name(format)}, {"mil", text}}.dump(2, ' ', false,
                                                                Json::error_handler_t::replace) +
             "\n";
    fmt::print("{}", text);
    return 0;
  }
  const Function& main = *program.main();
  std::vector<const Value*> inputs = InputValues(main), states;
  for (const auto& input : main.body.inputs)
    if (input->type.kind == Type::Kind::kState) states.push_back(input.get());
  Json weights_each = Json::array();
  WeightSummary weights = Weights(program, invocation.has("--weights") ? &weights_each : nullptr);
  std::map<std::string, int64_t> histogram = Histogram(program);
  if (invocation.json()) {
    Json json{{"format", Name(format)}, {"target", TargetName(main.opset)}};
    for (const char* kind : {"inputs", "outputs", "states"}) json[kind] = Json::array();
    for (size_t i = 0; i < main.inputs.size(); ++i)
      json["inputs"].push_back(PortJson(main.inputs[i], *inputs[i]));
    for (size_t i = 0; i < main.outputs.size(); ++i)
      json["outputs"].push_back(PortJson(main.outputs[i], *main.body.outputs()[i]));
    for (const Value* state : states) {
      const Type& type = state->type.elements[0];
      json["states"].push_back(
          {{"name", state->name}, {"dtype", Name(type.dtype)}, {"shape", StaticDims(type.shape)}});
    }
    json["functions"] = Json::array();
    for (const auto& function : program.functions) json["functions"].push_back(function->name);
    if (program.functions.size() > 1) json["default_function"] = main.name;
    json["operators"] = histogram;
    json["weights"] = {{"count", weights.count},
                       {"elements", weights.elements},
                       {"bytes", weights.bytes},
                       {"by_dtype", weights.by_dtype}};
    if (invocation.has("--weights")) json["weights"]["tensors"] = weights_each;
    Json metadata = Json::object();
    for (const auto& [key, value] : program.interface.metadata) metadata[key] = value;
    json["metadata"] = metadata;
    for (const auto& [key, value] : Texts(program.interface)) json[key] = value;
    if (!program.interface.class_labels.empty()) json["labels"] = program.interface.class_labels;
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}  {}, needs {}\n", path.string(), Name(format), TargetName(main.opset));
  auto ports = [&](std::string_view title, const std::vector<Port>& list, auto value_of) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Value& value = value_of(i);
      bool image = list[i].feature != Port::Feature::kMultiArray, input = title == "inputs";
      fmt::print("{:<11}{:<24} {:<6} [{}]{}{}{}\n", i == 0 ? title : "",
                 list[i].source_name.empty() ? value.name : list[i].source_name,
                 TypeText(value.type), fmt::join(ShapeText(value.type.shape), ", "),
                 image ? fmt::format(" {}{} image", ImageName(list[i].feature),
                                     list[i].dtype == DType::kFp16 ? " float16" : "")
                       : "",
                 input ? SizesText(program, list[i], value.type.shape) : "",
                 list[i].optional ? ", optional" : "");
    }
  };
  ports("inputs", main.inputs, [&](size_t i) -> const Value& { return *inputs[i]; });
  ports("outputs", main.outputs, [&](size_t i) -> const Value& { return *main.body.outputs()[i]; });
  for (const Value* state : states)
    fmt::print("{:<11}{:<24} {:<6} [{}]\n", state == states[0] ? "states" : "", state->name,
               Name(state->type.elements[0].dtype),
               fmt::join(ShapeText(state->type.elements[0].shape), ", "));
  if (program.functions.size() > 1) {
    std::vector<std::string> names;
    for (const auto& function : program.functions)
      names.push_back(function->name + (function->name == main.name ? " (shown)" : ""));
    fmt::print("{:<11}{}\n", "functions", fmt::join(names, ", "));
  }
  for (auto& [key, value] : Texts(program.interface)) {
    constexpr size_t kShown = 80;  // bytes; --json has all
    size_t end = std::min(value.find_first_of("\r\n"), kShown);
    while (end < value.size() && (value[end] & 0xC0) == 0x80) --end;  // within a UTF-8 sequence
    fmt::print("{:<10} {}{}\n", key, value.substr(0, end), end < value.size() ? "..." : "");
  }
  if (size_t labels = program.interface.class_labels.size())
    fmt::print("{:<11}{}, {} to {}\n", "labels", labels, program.interface.class_labels.front(),
               program.interface.class_labels.back());
  fmt::print("{:<11}{} tensors, {} elements, {:.2f} MB\n", "weights", weights.count,
             weights.elements, static_cast<double>(weights.bytes) / 1e6);
  if (invocation.has("--weights"))
    for (const Json& tensor : weights_each)
      fmt::print("  {:<40} {:<6} {:<20} {}\n", tensor["name"].get<std::string>(),
                 tensor["dtype"].get<std::string>(), tensor["shape"].dump(),
                 tensor["bytes"].get<int64_t>());
  int64_t total = 0;
  for (const auto& [name, count] : histogram) total += count;
  fmt::print("{:<11}{}\n", "operators", total);
  std::vector<std::pair<std::string, int64_t>> sorted(histogram.begin(), histogram.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < sorted.size() && (invocation.has("--ops") || i < 12); ++i)
    fmt::print("  {:>5}  {}\n", sorted[i].second, sorted[i].first);
  if (!invocation.has("--ops") && sorted.size() > 12)
    fmt::print("         ... {} more kinds, see --ops\n", sorted.size() - 12);
  return 0;
}

}  // namespace

Command InspectCommand() {
  std::vector<Flag> flags = {
      {"ANY", "", "a source model, package or MIL text", true},
      {"--ops", "", "every kind of operator"},
      {"--weights", "", "every constant of ten elements or more"},
      {"--mil", "",
       "the program as MIL text: of Core ML's formats the model.mil that its "
       "compiler writes, of a source model a short form for people"},
      {"--json", "", "one JSON document on stdout"}};
  flags.insert(flags.end(), BundleFlags().begin(), BundleFlags().end());
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  return {"inspect", "Show inputs, outputs, operators and weights of any model",
          "mlc inspect model.onnx --ops", flags, Inspect};
}

}  // namespace mlc
