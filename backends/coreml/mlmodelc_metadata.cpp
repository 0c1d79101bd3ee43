#include <fmt/ranges.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/coreml/write_mlmodelc.h"
#include "lib/support/json_text.h"

namespace mlc::coreml {

namespace {

using Json = nlohmann::ordered_json;

struct SystemRow {
  Opset opset;
  const char *macos, *ios, *watchos, *visionos;  // tvOS and macCatalyst have the versions of iOS
};
constexpr SystemRow kSystems[] = {
    {Opset::kIos15, "12.0", "15.0", "8.0", "1.0"},   {Opset::kIos16, "13.0", "16.0", "9.0", "1.0"},
    {Opset::kIos17, "14.0", "17.0", "10.0", "1.0"},  {Opset::kIos18, "15.0", "18.0", "11.0", "2.0"},
    {Opset::kIos26, "26.0", "26.0", "26.0", "26.0"},
};

// Operators whose versions in Core ML's bundles differ from the operator signatures: the names for
// iOS16 and iOS17. From iOS18 on it is "Ios18".
struct VersionRow {
  std::string_view op, ios16, ios17;
};
constexpr VersionRow kVersions[] = {
    {"add", "Ios16", "Ios17"},
    {"floor", "", "Ios17"},
    {"greater_equal", "", "Ios17"},
    {"layer_norm", "", "Ios17"},
    {"less", "", "Ios17"},
    {"linear", "", "Ios17"},
    {"logical_and", "", "Ios17"},
    {"logical_not", "", "Ios17"},
    {"matmul", "", "Ios17"},
    {"mul", "Ios16", "Ios17"},
    {"reduce_argmax", "Ios16", "Ios17"},
    {"reduce_max", "Ios16", "Ios17"},
    {"relu", "Ios16", "Ios16"},
    {"sigmoid", "Ios16", "Ios16"},
    {"silu", "Ios16", "Ios16"},
    {"softmax", "Ios16", "Ios16"},
    {"sub", "", "Ios17"},
    {"transpose", "", "Ios17"},
    {"concat", "", "Ios17"},
    {"expand_dims", "", "Ios17"},
    {"tile", "", ""},
};

// Core ML's name of an element type: "Float16".
std::string TypeName(DType dtype) {
  std::string name(Name(dtype));
  if (name.starts_with("fp")) return "Float" + name.substr(2);
  if (name.starts_with("uint")) return "UInt" + name.substr(4);
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

// "Ios17.sliceByIndex" or "SliceByIndex".
std::string OperationKey(const Operation& op, Opset opset) {
  const Form* form = op.form ? op.form : op.def->FormFor(opset);
  std::string version;
  if (form && form->since > Opset::kIos15)
    version = fmt::format("Ios{}", TargetName(form->since).substr(3));
  for (const VersionRow& row : kVersions)
    if (op.is(row.op) && opset > Opset::kIos15)
      version = opset == Opset::kIos16 ? row.ios16 : opset == Opset::kIos17 ? row.ios17 : "Ios18";
  std::string name;
  bool upper = version.empty();
  for (char c : op.def->name) {
    if (c == '_') {
      upper = true;
    } else {
      name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = false;
    }
  }
  return version.empty() ? name : version + "." + name;
}

std::string Precisions(const std::set<std::string>& types) {
  return types.size() == 1 ? *types.begin() : fmt::format("Mixed ({})", fmt::join(types, ", "));
}

Json Begin(const Port& port) {
  return {{"name", port.name},
          {"shortDescription", port.description},
          {"isOptional", port.optional ? "1" : "0"}};
}

Json ImageSchema(const Port& port, const Value& value) {
  bool color = port.feature != Port::Feature::kImageGray;
  bool flexible = port.default_shape.size() == 4;
  const Shape shape = flexible ? ToShape(port.default_shape) : value.type.shape;
  std::string height = shape[2].ToString(), width = shape[3].ToString();
  Json json = Begin(port);
  json["type"] = "Image";
  json["width"] = width;
  json["height"] = height;
  json["isColor"] = color ? "1" : "0";
  json["colorspace"] = port.feature == Port::Feature::kImageRgb   ? "RGB"
                       : port.feature == Port::Feature::kImageBgr ? "BGR"
                                                                  : "Grayscale";
  json["hasSizeFlexibility"] = flexible ? "1" : "0";
  json["formattedType"] =
      fmt::format("Image ({} {} × {})", color ? "Color" : "Grayscale", width, height);
  return json;
}

Json ClassSchema(const Port& port, const Type& type) {
  Json json = Begin(port);
  auto kind = [](const Type& t) { return t.dtype == DType::kString ? "String" : "Int64"; };
  if (type.is_tensor()) {
    json["type"] = json["formattedType"] = kind(type);
  } else {
    json["type"] = "Dictionary";
    json["keyType"] = kind(type.elements[0]);
    json["formattedType"] = fmt::format("Dictionary ({} → Double)", kind(type.elements[0]));
  }
  return json;
}

Json ArraySchema(const Port& port, const Type& type, std::string_view kind) {
  Dims shape = port.default_shape;
  bool known = true;
  for (const Dim& dim : port.default_shape.empty() ? type.shape : Shape()) {
    known = known && dim.is_constant();
    shape.push_back(dim.is_constant() ? dim.constant() : 0);
  }
  if (type.shape.empty()) shape = {1};
  if (!known) shape.clear();  // a flexible output
  std::string dtype = TypeName(type.dtype);
  Json json = Begin(port);
  bool flexible = !port.shape_range.empty() || !port.enumerated_shapes.empty();
  json["type"] = kind;
  json["dataType"] = dtype;
  json["hasShapeFlexibility"] = flexible ? "1" : "0";
  json["shape"] = fmt::format("[{}]", fmt::join(shape, ", "));
  std::string sizes = fmt::format("{}", fmt::join(shape, " × "));
  json["formattedType"] = fmt::format("{} ({}{}{})", kind, dtype, sizes.empty() ? "" : " ", sizes);
  std::string flexibility, list;
  for (auto [low, high] : port.shape_range) {
    flexibility += flexibility.empty() ? "" : " × ";
    if (high < 0)
      flexibility += fmt::format("{}...", low);
    else
      flexibility += low == high ? fmt::format("{}", low) : fmt::format("{}...{}", low, high);
    list += fmt::format("{}[{}, {}]", list.empty() ? "" : ", ", low, high);
  }
  if (!list.empty()) json["shapeRange"] = fmt::format("[{}]", list);
  if (!port.enumerated_shapes.empty()) {
    for (const Dims& dims : port.enumerated_shapes) {
      flexibility += fmt::format("{}{}", flexibility.empty() ? "" : " | ", fmt::join(dims, " × "));
      list += fmt::format("{}[{}]", list.empty() ? "" : ", ", fmt::join(dims, ", "));
    }
    json["enumeratedShapes"] = fmt::format("[{}]", list);
  }
  if (flexible) json["shapeFlexibility"] = flexibility;
  return json;
}

Json PortSchema(const Port& port, const Value& value) {
  if (port.feature != Port::Feature::kMultiArray) return ImageSchema(port, value);
  if (value.type.kind == Type::Kind::kState)
    return ArraySchema(port, value.type.elements[0], "State");
  if (value.def && value.def->is("classify")) return ClassSchema(port, value.type);
  return ArraySchema(port, value.type, "MultiArray");
}

// The fields that differ between functions.
void DescribeFunction(Function& function, Json& json) {
  Json inputs = Json::array(), outputs = inputs, states = inputs;
  size_t i = 0, s = 0;
  for (const auto& input : function.body.inputs) {
    if (input->type.kind == Type::Kind::kState)
      states.push_back(PortSchema(function.states[s++], *input));
    else
      inputs.push_back(PortSchema(function.inputs[i++], *input));
  }
  for (size_t o = 0; o < function.outputs.size(); ++o)
    outputs.push_back(PortSchema(function.outputs[o], *function.body.outputs()[o]));
  std::set<std::string> computed, stored;
  std::map<std::string, int64_t> histogram;
  ForEachOperation(function, [&](Operation* op) {
    auto store = [&](const Tensor& tensor) {
      if (tensor && (tensor.file_view().file || !tensor.absent_file().empty()))
        stored.insert(TypeName(tensor.dtype()));
    };
    store(op->val);
    for (const Operands& operands : op->args())
      for (const Operand& operand : operands)
        if (!operand.value) store(operand.constant());
    if (op->def->is_const()) return;
    ++histogram[OperationKey(*op, function.opset)];
    auto compute = [&](const Type& type) {
      if (type.is_tensor() && Bits(type.dtype) >= 8 && type.dtype != DType::kBool)
        computed.insert(TypeName(type.dtype));
    };
    for (const Operands& operands : op->args())
      for (const Operand& operand : operands) compute(operand.type());
    for (const auto& result : op->results) compute(result->type);
  });
  json["inputSchema"] = inputs;
  json["outputSchema"] = outputs;
  json["stateSchema"] = states;
  if (!computed.empty()) json["computePrecision"] = Precisions(computed);
  if (!stored.empty()) json["storagePrecision"] = Precisions(stored);
  json["mlProgramOperationTypeHistogram"] = histogram;
}

}  // namespace

std::string BundleMetadata(const Program& program, const std::string& class_name) {
  const Interface& interface = program.interface;
  Opset version = SpecificationOf(program);
  Json json = {{"metadataOutputVersion", "3.0"},
               {"specificationVersion", static_cast<int>(version)},
               {"generatedClassName", class_name},
               {"method", "predict"},
               {"isUpdatable", "0"},
               {"modelParameters", Json::array()},
               {"modelType", {{"name", "MLModelType_mlProgram"}}}};
  for (const auto& [key, value] :
       {std::pair("author", interface.author), std::pair("license", interface.license),
        std::pair("shortDescription", interface.short_description),
        std::pair("version", interface.version)})
    if (!value.empty()) json[key] = value;
  Json metadata = Json::object();
  for (const auto& [key, value] : interface.metadata) metadata[key] = value;
  json["userDefinedMetadata"] = metadata;
  for (const SystemRow& row : kSystems)
    if (row.opset == version)
      json["availability"] = {{"macOS", row.macos},       {"iOS", row.ios},
                              {"tvOS", row.ios},          {"watchOS", row.watchos},
                              {"visionOS", row.visionos}, {"macCatalyst", row.ios}};
  DescribeFunction(*program.main(), json);
  if (program.functions.size() > 1) {
    json["defaultFunctionName"] = interface.default_function;
    json["functions"] = Json::array();
    for (const auto& function : program.functions) {
      Json one = {{"name", function->name}};
      DescribeFunction(*function, one);
      json["functions"].push_back(one);
    }
  }
  return JsonText(Json::array({json}), 2, BadUtf8::kReplace);
}

}  // namespace mlc::coreml
