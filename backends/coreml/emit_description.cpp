#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "backends/coreml/classifier.h"
#include "backends/coreml/emit.h"
#include "lib/coreml/dtypes.h"
#include "lib/coreml/interface_entry.h"
#include "lib/coreml/package_layout.h"
#include "lib/coreml/schema.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace {

namespace spec = mlc::schema;

constexpr size_t kMaxEnumeratedShapes = 128;

// Returns the port of a value, or a port made from the value if the function has none.
Port PortOf(const std::vector<Port>& ports, size_t index, const Value& value) {
  return index < ports.size() ? ports[index] : Port{.name = value.name};
}

// Returns one shape for each combination of the listed sizes of its symbols, smallest first;
// nothing if a symbol has no list.
std::vector<Dims> EnumeratedShapes(const Shape& shape, const Symbols& known) {
  std::vector<std::string> symbols;
  for (const Dim& dim : shape) dim.CollectSymbols(symbols);
  std::vector<std::map<std::string, int64_t>> choices(1);
  for (const std::string& name : symbols) {
    auto it = known.find(name);
    if (it == known.end() || it->second.enumerated.empty()) return {};
    std::vector<std::map<std::string, int64_t>> longer;
    for (const auto& choice : choices)
      for (int64_t size : it->second.enumerated) {
        longer.push_back(choice);
        longer.back()[name] = size;
      }
    choices = std::move(longer);
    if (choices.size() > kMaxEnumeratedShapes) return {};
  }
  std::vector<Dims> shapes;
  for (const auto& choice : choices) {
    Dims dims;
    for (const Dim& dim : shape) dims.push_back(dim.Evaluate(choice).value_or(0));
    if (std::ranges::find(shapes, dims) == shapes.end()) shapes.push_back(std::move(dims));
  }
  return shapes;
}

class Describer {
 public:
  Describer(Opset target, Diagnostics& diagnostics) : target_(target), diagnostics_(diagnostics) {}

  // Out is FunctionDescription or ModelDescription, which have the same three lists.
  template <class Out>
  void Describe(const Function& function, const std::vector<std::string>& outputs, Out* out) {
    symbols_ = &function.symbols;
    size_t enumerated = 0;
    for (const auto& input : function.body.inputs)
      if (input->type.is_tensor() && !EnumeratedShapes(input->type.shape, *symbols_).empty() &&
          !IsStatic(input->type.shape))
        ++enumerated;
    bool may_enumerate = enumerated < 2 || target_ >= Opset::kIos18;
    if (!may_enumerate)
      diagnostics_.Note(
          "{} allows enumerated sizes for only one input; described as ranges instead",
          TargetName(target_));
    size_t i = 0, s = 0;
    for (const auto& input : function.body.inputs) {
      if (input->type.kind == Type::Kind::kState)
        DescribeState(PortOf(function.states, s++, *input), *input, out->add_state());
      else
        DescribeInput(PortOf(function.inputs, i++, *input), *input, may_enumerate,
                      out->add_input());
    }
    const Operation* classifier = FindClassifier(function);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Value& value = *function.body.outputs()[o];
      if (classifier && &value == classifier->result(0)) out->set_predictedfeaturename(outputs[o]);
      if (classifier && &value == classifier->result(1))
        out->set_predictedprobabilitiesname(outputs[o]);
      Port port = PortOf(function.outputs, o, value);
      port.name = outputs[o];
      DescribeOutput(port, value, out->add_output());
    }
  }

 private:
  static void Begin(const Port& port, const std::string& name, spec::FeatureDescription* out) {
    out->set_name(name);
    out->set_shortdescription(port.description);
    if (port.optional) out->mutable_type()->set_isoptional(true);
  }

  static void SetType(DType dtype, spec::ArrayFeatureType* array) {
    array->set_datatype(static_cast<spec::ArrayFeatureType::ArrayDataType>(ArrayDataType(dtype)));
  }

  static void SetDefault(double number, DType dtype, spec::ArrayFeatureType* array) {
    if (IsFloat(dtype))
      array->set_floatdefaultvalue(static_cast<float>(number));
    else
      array->set_intdefaultvalue(static_cast<int32_t>(number));
  }

  static void SetRange(std::pair<int64_t, int64_t> range, spec::SizeRange* out) {
    out->set_lowerbound(static_cast<uint64_t>(range.first));
    out->set_upperbound(range.second);
  }

  // Flexible sizes, from the description that was read or from the symbols of a shape.
  struct Flexible {
    Dims by_default;
    std::vector<Dims> enumerated;                     // alternative to `ranges`
    std::vector<std::pair<int64_t, int64_t>> ranges;  // an upper bound of -1 means unbounded
  };

  Flexible SizesOf(const Port& port, const Shape& shape, bool may_enumerate) {
    if (!port.default_shape.empty())
      return {port.default_shape, port.enumerated_shapes, port.shape_range};
    Flexible sizes;
    bool fixed = true;
    for (const Dim& dim : shape) {
      Dim::Range range =
          dim.is_constant() ? Dim::Range{dim.constant(), dim.constant()} : dim.Bounds(*symbols_);
      range.low = std::max<int64_t>(range.low, 1);
      sizes.by_default.push_back(range.low);
      sizes.ranges.emplace_back(range.low, range.high >= INT32_MAX ? -1 : range.high);
      fixed = fixed && range.low == range.high;
    }
    if (fixed) {
      sizes.ranges.clear();
      return sizes;
    }
    if (may_enumerate) sizes.enumerated = EnumeratedShapes(shape, *symbols_);
    if (!sizes.enumerated.empty()) {
      sizes.by_default = sizes.enumerated[0];
      sizes.ranges.clear();
      return sizes;
    }
    for (const Dim& dim : shape)
      if (auto it = symbols_->find(dim.symbol().value_or(""));
          it != symbols_->end() && it->second.enumerated.size() > 1)
        diagnostics_.Note(
            "input \"{}\": Core ML enumerates whole shapes, not dimensions; the sizes {} of {} "
            "are described as the range {}..{}",
            port.source_name, fmt::join(it->second.enumerated, ", "), it->first, it->second.low,
            it->second.high);
    return sizes;
  }

  void DescribeImage(const Port& port, const Value& value, bool may_enumerate,
                     spec::ImageFeatureType* image) {
    const Shape& shape = value.type.shape;
    int64_t channels = port.feature == Port::Feature::kImageGray ? 1 : 3;
    if (shape.size() != 4 || shape[0] != Dim(1) || shape[1] != Dim(channels))
      throw Error("input-shape", "image \"{}\" has shape {}", port.name, ToString(shape))
          .Expected("[1, {}, height, width]", channels);
    Flexible sizes = SizesOf(port, shape, may_enumerate);
    image->set_height(sizes.by_default[2]);
    image->set_width(sizes.by_default[3]);
    for (const Dims& dims : sizes.enumerated) {
      auto* size = image->mutable_enumeratedsizes()->add_sizes();
      size->set_height(static_cast<uint64_t>(dims[2]));
      size->set_width(static_cast<uint64_t>(dims[3]));
    }
    if (sizes.ranges.size() == 4) {
      spec::ImageFeatureType::ImageSizeRange* range = image->mutable_imagesizerange();
      SetRange(sizes.ranges[2], range->mutable_heightrange());
      SetRange(sizes.ranges[3], range->mutable_widthrange());
    }
    if (port.feature == Port::Feature::kImageGray)
      image->set_colorspace((port.dtype == DType::kNone ? value.type.dtype : port.dtype) ==
                                    DType::kFp16
                                ? spec::ImageFeatureType::GRAYSCALE_FLOAT16
                                : spec::ImageFeatureType::GRAYSCALE);
    else
      image->set_colorspace(port.feature == Port::Feature::kImageRgb ? spec::ImageFeatureType::RGB
                                                                     : spec::ImageFeatureType::BGR);
  }

  void DescribeInput(const Port& port, const Value& value, bool may_enumerate,
                     spec::FeatureDescription* out) {
    Begin(port, value.name, out);
    if (port.feature != Port::Feature::kMultiArray)
      return DescribeImage(port, value, may_enumerate, out->mutable_type()->mutable_imagetype());
    spec::ArrayFeatureType* array = out->mutable_type()->mutable_multiarraytype();
    SetType(value.type.dtype, array);
    if (port.default_value) SetDefault(*port.default_value, value.type.dtype, array);
    const Shape& shape = value.type.shape;
    if (shape.empty()) return array->add_shape(1);  // Core ML does not support inputs of rank 0
    DescribeSizes(SizesOf(port, shape, may_enumerate), array);
  }

  static void DescribeSizes(const Flexible& sizes, spec::ArrayFeatureType* array) {
    for (int64_t dim : sizes.by_default) array->add_shape(dim);
    for (const Dims& dims : sizes.enumerated) {
      spec::ArrayFeatureType::Shape* one = array->mutable_enumeratedshapes()->add_shapes();
      for (int64_t dim : dims) one->add_shape(dim);
    }
    for (const auto& range : sizes.ranges)
      SetRange(range, array->mutable_shaperange()->add_sizeranges());
  }

  void DescribeState(const Port& port, const Value& value, spec::FeatureDescription* out) {
    Begin(port, value.name, out);
    const Type& tensor = value.type.elements[0];
    if (!IsStatic(tensor.shape) || tensor.dtype != DType::kFp16)
      throw Error("unsupported-dtype", "state \"{}\" has type {}", value.name, tensor.ToString())
          .Expected("fp16 with a fixed shape");
    spec::ArrayFeatureType* array = out->mutable_type()->mutable_statetype()->mutable_arraytype();
    SetType(tensor.dtype, array);
    for (int64_t dim : StaticDims(tensor.shape)) array->add_shape(dim);
  }

  // A label, or the dictionary from labels to probabilities.
  static void DescribeClass(const Type& type, spec::FeatureType* out) {
    if (type.is_tensor() && type.dtype == DType::kString)
      out->mutable_stringtype();
    else if (type.is_tensor())
      out->mutable_int64type();
    else if (type.elements[0].dtype == DType::kString)
      out->mutable_dictionarytype()->mutable_stringkeytype();
    else
      out->mutable_dictionarytype()->mutable_int64keytype();
  }

  void DescribeOutput(const Port& port, const Value& value, spec::FeatureDescription* out) {
    Begin(port, port.name, out);
    if (port.feature != Port::Feature::kMultiArray)
      return DescribeImage(port, value, false, out->mutable_type()->mutable_imagetype());
    if (value.def && value.def->is("classify"))
      return DescribeClass(value.type, out->mutable_type());
    spec::ArrayFeatureType* array = out->mutable_type()->mutable_multiarraytype();
    SetType(value.type.dtype, array);
    if (port.default_shape.size() == value.type.shape.size() && !port.default_shape.empty())
      return DescribeSizes({port.default_shape, port.enumerated_shapes, port.shape_range}, array);
    // Flexible outputs have no shape in the description.
    Dims dims;
    for (const Dim& dim : value.type.shape) {
      std::optional<int64_t> size = FixedSize(dim, *symbols_);
      if (!size) return;
      dims.push_back(*size);
    }
    for (int64_t dim : dims) array->add_shape(dim);
  }

  const Symbols* symbols_ = nullptr;  // symbols of the current function
  Opset target_;
  Diagnostics& diagnostics_;
};

void DescribeMetadata(const Program& program, spec::Metadata* out) {
  const Interface& interface = program.interface;
  out->set_author(interface.author);
  out->set_license(interface.license);
  out->set_shortdescription(interface.short_description);
  out->set_versionstring(interface.version);
  std::vector<std::pair<std::string, std::string>> entries = interface.metadata;
  if (std::string entry = InterfaceEntry(program); !entry.empty()) {
    auto after =
        std::ranges::find_if(entries, [](const auto& e) { return e.first > kInterfaceKey; });
    entries.emplace(after, std::string(kInterfaceKey), std::move(entry));
  }
  for (const auto& [key, value] : entries) {
    spec::UserDefinedEntry* entry = out->add_userdefined();
    entry->set_key(key);
    entry->set_value(value);
  }
}

// The indices of the program's functions, in the order of the description that was read.
std::vector<size_t> DescribedOrder(const Program& program) {
  std::vector<size_t> places(program.functions.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const std::vector<std::string>& order = program.interface.function_order;
  std::ranges::stable_sort(places, [&](size_t a, size_t b) {
    auto place = [&](size_t i) {
      return std::ranges::find(order, program.functions[i]->name) - order.begin();
    };
    return place(a) < place(b);
  });
  return places;
}

}  // namespace

void EmitDescription(const Program& program, Opset target, const OutputNames& outputs,
                     spec::ModelDescription& description, Diagnostics& diagnostics) {
  Describer describer(target, diagnostics);
  if (program.functions.size() == 1) {
    describer.Describe(*program.functions[0], outputs[0], &description);
  } else {
    for (size_t i : DescribedOrder(program)) {
      spec::FunctionDescription* function = description.add_functions();
      function->set_name(program.functions[i]->name);
      describer.Describe(*program.functions[i], outputs[i], function);
    }
    description.set_defaultfunctionname(program.main()->name);
  }
  DescribeMetadata(program, description.mutable_metadata());
  if (description.metadata().ByteSizeLong() == 0) description.clear_metadata();
  CheckSchema(description);  // for the user's texts
}

}  // namespace mlc::coreml
