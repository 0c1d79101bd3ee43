#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "frontends/coreml/read.h"
#include "lib/coreml/dtypes.h"
#include "lib/coreml/interface_entry.h"
#include "lib/ir/port_index.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace {

namespace spec = mlc::schema;
using Features = google::protobuf::RepeatedPtrField<spec::FeatureDescription>;

template <class Values>
Dims ReadDims(const Values& values, const std::string& name) {
  Dims dims(values.begin(), values.end());
  for (int64_t dim : dims)
    if (dim < 0)
      throw Error("bad-file", "the description gives \"{}\" an invalid dimension: {}", name, dim);
  return dims;
}

// Adds one range of sizes. Throws "bad-file" for an invalid range.
void AddRange(const spec::SizeRange& range, Port& port) {
  auto low = static_cast<int64_t>(range.lowerbound());
  if (low < 0 || range.upperbound() < -1 || (range.upperbound() >= 0 && low > range.upperbound()))
    throw Error("bad-file", "the description gives \"{}\" an invalid size range: {} to {}",
                port.name, range.lowerbound(), range.upperbound());
  port.shape_range.emplace_back(low, range.upperbound());
}

void ReadArray(const spec::ArrayFeatureType& array, bool is_output, Port& port) {
  std::optional<DType> dtype = FromArrayDataType(array.datatype());
  if (!dtype)
    throw Error("bad-file", "the description gives no element type for \"{}\"", port.name);
  port.dtype = *dtype;
  Dims shape = ReadDims(array.shape(), port.name);
  for (const auto& one : array.enumeratedshapes().shapes())
    port.enumerated_shapes.push_back(ReadDims(one.shape(), port.name));
  for (const spec::SizeRange& range : array.shaperange().sizeranges()) AddRange(range, port);
  if (array.has_intdefaultvalue()) port.default_value = array.intdefaultvalue();
  if (array.has_floatdefaultvalue()) port.default_value = array.floatdefaultvalue();
  if (array.has_doubledefaultvalue()) port.default_value = array.doubledefaultvalue();
  size_t rank = shape.size();
  bool fits = port.shape_range.empty() || port.shape_range.size() == rank;
  for (const Dims& dims : port.enumerated_shapes) fits = fits && dims.size() == rank;
  if (!fits)
    throw Error("bad-file", "the description gives \"{}\" shapes of different ranks", port.name);
  if (is_output || array.has_enumeratedshapes() || array.has_shaperange())
    port.default_shape = std::move(shape);
}

// Flexible image sizes are stored as sizes of arrays of shape [1, channels, height, width].
void ReadImageSizes(const spec::ImageFeatureType& image, Port& port) {
  if (image.SizeFlexibility_case() == spec::ImageFeatureType::SIZEFLEXIBILITY_NOT_SET) return;
  int64_t channels = port.feature == Port::Feature::kImageGray ? 1 : 3;
  auto shape = [&](uint64_t height, uint64_t width) {
    if (height > INT32_MAX || width > INT32_MAX)
      throw Error("bad-file", "the description gives image \"{}\" an invalid size: {} x {}",
                  port.name, width, height);
    return Dims{1, channels, static_cast<int64_t>(height), static_cast<int64_t>(width)};
  };
  port.default_shape =
      shape(static_cast<uint64_t>(image.height()), static_cast<uint64_t>(image.width()));
  for (const auto& size : image.enumeratedsizes().sizes())
    port.enumerated_shapes.push_back(shape(size.height(), size.width()));
  if (!image.has_imagesizerange()) return;
  port.shape_range = {{1, 1}, {channels, channels}};
  AddRange(image.imagesizerange().heightrange(), port);
  AddRange(image.imagesizerange().widthrange(), port);
}

void ReadImageColors(const spec::ImageFeatureType& image, Port& port) {
  const auto colors = image.colorspace();
  const bool halves = colors == spec::ImageFeatureType::GRAYSCALE_FLOAT16;
  if (colors == spec::ImageFeatureType::RGB) {
    port.feature = Port::Feature::kImageRgb;
  } else if (colors == spec::ImageFeatureType::BGR) {
    port.feature = Port::Feature::kImageBgr;
  } else if (colors == spec::ImageFeatureType::GRAYSCALE || halves) {
    port.feature = Port::Feature::kImageGray;
    port.dtype = halves ? DType::kFp16 : DType::kUint8;
  } else {
    throw Error("bad-file", "the description gives no color space for image \"{}\"", port.name);
  }
}

std::vector<Port> ReadPorts(const Features& features, bool is_output = false) {
  std::vector<Port> ports;
  std::unordered_set<std::string_view> names;
  for (const spec::FeatureDescription& feature : features) {
    Port port;
    port.name = feature.name();
    port.source_name = feature.name();
    port.description = feature.shortdescription();
    port.optional = feature.type().isoptional();
    switch (feature.type().Type_case()) {
      case spec::FeatureType::kMultiArrayType:
        ReadArray(feature.type().multiarraytype(), is_output, port);
        break;
      case spec::FeatureType::kStateType:
        ReadArray(feature.type().statetype().arraytype(), false, port);
        break;
      case spec::FeatureType::kImageType:
        ReadImageColors(feature.type().imagetype(), port);
        ReadImageSizes(feature.type().imagetype(), port);
        break;
      case spec::FeatureType::kStringType:
      case spec::FeatureType::kInt64Type:
      case spec::FeatureType::kDictionaryType:
        if (!is_output)
          throw Error("unsupported-field", "\"{}\" is not an array, image or state", port.name);
        break;
      default:
        throw Error("unsupported-field", "the type of \"{}\" is not supported", port.name);
    }
    if (!names.insert(feature.name()).second)
      throw Error("bad-file", "the description contains \"{}\" more than once", port.name);
    ports.push_back(std::move(port));
  }
  return ports;
}

// `Description` is FunctionDescription or ModelDescription.
template <class Description>
void ReadFunction(const Description& description, Function* function) {
  function->inputs = ReadPorts(description.input());
  function->outputs = ReadPorts(description.output(), true);
  function->states = ReadPorts(description.state());
}

// The description of a classifier names the results of its `classify` operation and no other
// outputs.
template <class Description>
void CheckClassifier(const Description& description, const Function& function) {
  std::string label, probabilities;
  for (const Value* output : function.body.outputs())
    if (output->def && output->def->is("classify"))
      (output->index == 0 ? label : probabilities) = output->name;
  if (description.predictedfeaturename() != label ||
      description.predictedprobabilitiesname() != probabilities)
    throw Error("bad-file",
                "the description names \"{}\" and \"{}\" as classifier outputs, but "
                "the program has \"{}\" and \"{}\"",
                description.predictedfeaturename(), description.predictedprobabilitiesname(), label,
                probabilities);
}

// Dimensions that are fixed in the program must have the size given in the description, if any.
void CheckShapes(const Features& features,
                 const std::unordered_map<std::string_view, const Value*>& values) {
  for (const spec::FeatureDescription& feature : features) {
    const spec::FeatureType& type = feature.type();
    const auto& array =
        type.has_statetype() ? type.statetype().arraytype().shape() : type.multiarraytype().shape();
    Dims described(array.begin(), array.end());
    if (type.has_imagetype()) {
      bool gray = type.imagetype().colorspace() != spec::ImageFeatureType::RGB &&
                  type.imagetype().colorspace() != spec::ImageFeatureType::BGR;
      described = {1, gray ? 1 : 3, type.imagetype().height(), type.imagetype().width()};
    }
    auto found = values.find(feature.name());
    if (described.empty() || found == values.end()) continue;
    const Value& value = *found->second;
    bool is_state = value.type.kind == Type::Kind::kState;
    Shape shape = (is_state ? value.type.elements[0] : value.type).shape;
    if (shape.empty()) shape = {1};  // Core ML has no scalar inputs or outputs
    bool fits = shape.size() == described.size();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = !shape[d].is_constant() || shape[d] == Dim(described[d]);
    if (!fits)
      throw Error("bad-file",
                  "the description gives \"{}\" the shape [{}], but its type in the program is {}",
                  value.name, fmt::join(described, ", "), value.type.ToString());
  }
}

void CheckElementType(const Port& port, std::string_view what, const Type& type) {
  if (port.feature != Port::Feature::kMultiArray || port.dtype == DType::kNone ||
      !type.is_tensor() || port.dtype == type.dtype)
    return;
  throw Error(
      "bad-file",
      "the description gives {} \"{}\" the element type {}, but its type in the program is {}",
      what, port.name, Name(port.dtype), type.ToString());
}

void CheckAllThere(const std::vector<Port>& described, const std::vector<Port>& found,
                   std::string_view what) {
  const PortIndex by_name(found);
  for (const Port& port : described)
    if (!by_name.Find(port.name))
      throw Error("bad-file", "{} \"{}\" of the description is missing from the program", what,
                  port.name);
}

// Reorders ports to match the inputs that they describe.
void OrderPorts(const Block& body, bool states, std::vector<Port>& ports) {
  std::vector<Port> ordered;
  const PortIndex by_name(ports);
  for (const auto& input : body.inputs) {
    bool is_state = input->type.kind == Type::Kind::kState;
    if (is_state != states) continue;
    const Port* port = by_name.Find(input->name);
    if (!port)
      throw Error("bad-file", "the input is missing from the description")
          .At({"", fmt::format("input \"{}\"", input->name)});
    CheckElementType(*port, states ? "state" : "input",
                     is_state ? input->type.elements[0] : input->type);
    ordered.push_back(*port);
  }
  CheckAllThere(ports, ordered, states ? "state" : "input");
  ports = std::move(ordered);
}

}  // namespace

void MatchInputs(Function& function) {
  OrderPorts(function.body, false, function.inputs);
  OrderPorts(function.body, true, function.states);
}

void MatchOutputs(Function& function) {
  std::vector<Port> ordered;
  const PortIndex by_name(function.outputs);
  for (const Value* output : function.body.outputs()) {
    const Port* port = by_name.Find(output->name);
    if (!port)
      throw Error("bad-file", "output \"{}\" is missing from the description", output->name);
    CheckElementType(*port, "output", output->type);
    ordered.push_back(*port);
  }
  CheckAllThere(function.outputs, ordered, "output");
  function.outputs = std::move(ordered);
}

void CheckDescription(const spec::ModelDescription& description, const Program& program) {
  auto check = [](const auto& described, const Function& function) {
    CheckClassifier(described, function);
    std::unordered_map<std::string_view, const Value*> inputs, outputs;
    for (const auto& input : function.body.inputs) inputs.emplace(input->name, input.get());
    for (const Value* output : function.body.outputs()) outputs.emplace(output->name, output);
    CheckShapes(described.input(), inputs);
    CheckShapes(described.state(), inputs);
    CheckShapes(described.output(), outputs);
  };
  if (description.functions_size() == 0) check(description, *program.functions[0]);
  for (const spec::FunctionDescription& one : description.functions())
    for (const auto& function : program.functions)
      if (function->name == one.name()) check(one, *function);
}

InputDims ReadDescription(const spec::ModelDescription& description, Program& program) {
  if (program.functions.empty()) throw Error("bad-file", "the program has no functions");
  if (description.functions_size() == 0) {
    if (program.functions.size() != 1)
      throw Error("bad-file", "the program has several functions, but the description lists none");
    if (program.functions[0]->name != kMainFunction)
      throw Error("bad-file", "the program's only function has the unexpected name \"{}\"",
                  program.functions[0]->name)
          .Expected(std::string(kMainFunction));
    ReadFunction(description, program.functions[0].get());
    program.interface.default_function = program.functions[0]->name;
  } else {
    for (const auto& function : program.functions) {
      const auto& described = description.functions();
      auto it = std::ranges::find_if(
          described, [&](const auto& candidate) { return candidate.name() == function->name; });
      if (it == described.end())
        throw Error("bad-file", "function \"{}\" is missing from the description", function->name);
      ReadFunction(*it, function.get());
    }
    for (const auto& function : description.functions())
      program.interface.function_order.push_back(function.name());
    program.interface.default_function = description.defaultfunctionname();
    if (std::ranges::none_of(program.functions, [&](const auto& function) {
          return function->name == program.interface.default_function;
        }))
      throw Error("bad-file", "the default function \"{}\" is missing from the program",
                  description.defaultfunctionname());
  }

  const spec::Metadata& metadata = description.metadata();
  program.interface.author = metadata.author();
  program.interface.license = metadata.license();
  program.interface.short_description = metadata.shortdescription();
  program.interface.version = metadata.versionstring();
  InputDims input_dims;
  for (const spec::UserDefinedEntry& entry : metadata.userdefined()) {
    if (entry.key() == kInterfaceKey)
      input_dims = ApplyInterfaceEntry(entry.value(), program);
    else
      program.interface.metadata.emplace_back(entry.key(), entry.value());
  }
  return input_dims;
}

void ReadWeightSources(const spec::ModelDescription& description, Program& program) {
  for (const spec::UserDefinedEntry& entry : description.metadata().userdefined())
    if (entry.key() == kInterfaceKey) ApplyWeightSources(entry.value(), program);
}

}  // namespace mlc::coreml
