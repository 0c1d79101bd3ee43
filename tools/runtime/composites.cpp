#include "tools/runtime/composites.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/bits.h"
#include "lib/lower/convert.h"
#include "lib/lower/einsum.h"
#include "lib/lower/gaussian_elimination.h"
#include "lib/lower/indices.h"
#include "lib/lower/matrix_products.h"
#include "lib/lower/quantized_arithmetic.h"
#include "lib/lower/scatter.h"
#include "lib/lower/signal.h"
#include "lib/lower/sort.h"
#include "tools/driver/operators.h"

namespace mlc::abi {

namespace {

Value* Int32(const CompositeArguments& arguments, std::string_view name) {
  Value* value = arguments.value(name);
  if (value->type.dtype != DType::kInt32)
    throw Error("unsupported-dtype", "\"{}\" is {}", name, value->type.ToString())
        .Expected("int32");
  return value;
}

template <Value* (*kLower)(Builder&, Value*, Value*, DType)>
std::vector<Value*> Bitwise(Builder& b, const CompositeArguments& arguments) {
  return {kLower(b, Int32(arguments, "A"), Int32(arguments, "B"), DType::kInt32)};
}

std::vector<Value*> BitShift(Builder& b, const CompositeArguments& arguments) {
  const std::string direction = arguments.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw Error("bad-attribute", "direction is \"{}\"", direction).Expected("LEFT or RIGHT");
  return {lower::BitsShifted(b, Int32(arguments, "X"), Int32(arguments, "Y"), direction == "LEFT",
                             DType::kInt32)};
}

template <Value* (*kLower)(Builder&, Value*)>
std::vector<Value*> OfSquare(Builder& b, const CompositeArguments& arguments) {
  return {kLower(b, arguments.value("X"))};
}

lower::Scattered Scattered(const CompositeArguments& arguments) {
  const std::string reduction = arguments.String("reduction", "none");
  for (std::string_view known : {"none", "add", "mul", "max", "min"})
    if (reduction == known)
      return {arguments.value("data"), arguments.value("indices"), arguments.value("updates"),
              reduction == "none" ? "update" : reduction};
  throw Error("bad-attribute", "reduction is \"{}\"", reduction)
      .Expected("none, add, mul, max or min");
}

std::vector<Value*> ScatterElements(Builder& b, const CompositeArguments& arguments) {
  const lower::Scattered scattered = Scattered(arguments);
  const int axis = OpContext::Axis(arguments.Int("axis", 0), scattered.data->type.rank());
  return {lower::ScatterAlongAxis(b, scattered, axis)};
}

std::vector<Value*> ScatterVectors(Builder& b, const CompositeArguments& arguments) {
  return {lower::ScatterVectors(b, Scattered(arguments))};
}

std::vector<Value*> Unique(Builder& b, const CompositeArguments& arguments) {
  constexpr int64_t kNone = INT64_MIN;
  Value* x = arguments.value("X");
  const int64_t axis = arguments.Int("axis", kNone);
  const lower::Distinct distinct = lower::DistinctSlices(
      b, x, axis == kNone ? std::nullopt : std::optional(OpContext::Axis(axis, x->type.rank())),
      arguments.Int("sorted", 1) != 0);
  return {distinct.values, distinct.first, distinct.inverse, distinct.counts};
}

int AxisOf(const CompositeArguments& arguments, std::string_view tensor, int64_t otherwise) {
  return OpContext::Axis(arguments.Int("axis", otherwise), arguments.value(tensor)->type.rank());
}

DType TypeNamed(const CompositeArguments& arguments, std::string_view name) {
  const std::string text = arguments.String(name, "");
  if (const std::optional<DType> dtype = ParseDType(text)) return *dtype;
  throw Error("bad-attribute", "{} is \"{}\"", name, text)
      .Expected("an element type, e.g. \"int8\" or \"bf16\"");
}

template <Value* (*kLower)(Builder&, Value*, DType, DType)>
std::vector<Value*> ToType(Builder& b, const CompositeArguments& arguments) {
  Value* input = arguments.value("input");
  return {kLower(b, input, input->type.dtype, TypeNamed(arguments, "to"))};
}

std::vector<Value*> Einsum(Builder& b, const CompositeArguments& arguments) {
  return {lower::Einsum(b, arguments.String("equation", ""), arguments.values("Inputs"))};
}

std::vector<Value*> MatMul(Builder& b, const CompositeArguments& arguments) {
  return {lower::MatrixProduct(b, arguments.value("A"), arguments.value("B"))};
}

std::vector<Value*> MatMulInteger(Builder& b, const CompositeArguments& arguments) {
  Value *left = arguments.value("A"), *right = arguments.value("B");
  for (const Value* factor : {left, right})
    if (!IsInteger(factor->type.dtype) || Bits(factor->type.dtype) > 16)
      throw Error("unsupported-dtype", "\"{}\" is {}", factor == left ? "A" : "B",
                  factor->type.ToString())
          .Expected("an integer type of 8 or 16 bits");
  Value *left_zero = arguments.value("a_zero_point"), *right_zero = arguments.value("b_zero_point");
  if (left_zero && left->type.rank() > 1) left_zero = lower::OverRows(b, left_zero);
  if (right_zero) right_zero = lower::OverColumns(b, right_zero);
  const lower::Factor sum =
      lower::ExactMatrixProduct(b, lower::Centered(b, left, left_zero, left->type.dtype),
                                lower::Centered(b, right, right_zero, right->type.dtype));
  return {b.Cast(sum.value, DType::kInt32)};
}

std::vector<Value*> Gather(Builder& b, const CompositeArguments& arguments) {
  Value* data = arguments.value("data");
  const int axis = AxisOf(arguments, "data", 0);
  Value* indices = lower::FromFront(b, arguments.value("indices"), data, axis);
  return {b.Make("gather", {{"x", data}, {"indices", indices}, {"axis", axis}})};
}

std::vector<Value*> GatherElements(Builder& b, const CompositeArguments& arguments) {
  Value* data = arguments.value("data");
  const int axis = AxisOf(arguments, "data", 0);
  Value* indices = lower::FromFront(b, arguments.value("indices"), data, axis);
  return {b.Make("gather_along_axis", {{"x", data}, {"indices", indices}, {"axis", axis}})};
}

std::vector<Value*> GatherVectors(Builder& b, const CompositeArguments& arguments) {
  Value* data = arguments.value("data");
  const int64_t batch = arguments.Int("batch_dims", 0, 0, std::max(data->type.rank() - 1, 0));
  Value* indices =
      lower::VectorsFromFront(b, arguments.value("indices"), data, static_cast<int>(batch));
  Builder::Args args = {{"x", data}, {"indices", indices}};
  if (batch) args.emplace_back("batch_dims", batch);
  return {b.Make("gather_nd", std::move(args))};
}

std::vector<Value*> TopK(Builder& b, const CompositeArguments& arguments) {
  Value *x = arguments.value("X"), *k = arguments.value("K");
  const int axis = AxisOf(arguments, "X", -1);
  const bool largest = arguments.Int("largest", 1) != 0;
  if (k->is_constant())
    return b.MakeAll("topk", {{"x", x},
                              {"k", arguments.Int("K", 1, 1, INT32_MAX)},
                              {"axis", axis},
                              {"ascending", !largest}});
  Value* places = lower::FirstOfOrder(b, x, axis, AsVector(b, k), largest);
  return {b.Make("gather_along_axis", {{"x", x}, {"indices", places}, {"axis", axis}}), places};
}

lower::Scheme SchemeOf(const CompositeArguments& arguments, std::string_view scale,
                       std::string_view zero, DType integers) {
  return {.scale = arguments.value(scale),
          .zero = arguments.value(zero),
          .integers = integers,
          .axis = arguments.Int("axis", 1),
          .block = arguments.Int("block_size", 0, 0, INT32_MAX),
          .target = Opset::kIos16};
}

std::vector<Value*> QuantizeLinear(Builder& b, const CompositeArguments& arguments) {
  const Value* zero = arguments.value("y_zero_point");
  const DType integers = zero ? zero->type.dtype : DType::kUint8;
  return {lower::Quantize(b, arguments.value("x"),
                          SchemeOf(arguments, "y_scale", "y_zero_point", integers))};
}

std::vector<Value*> DequantizeLinear(Builder& b, const CompositeArguments& arguments) {
  Value* x = arguments.value("x");
  if (!IsInteger(x->type.dtype))
    throw Error("unsupported-dtype", "\"x\" is {}", x->type.ToString()).Expected("integers");
  const lower::Scheme scheme = SchemeOf(arguments, "x_scale", "x_zero_point", x->type.dtype);
  return {lower::Dequantize(b, x, scheme, scheme.scale->type.dtype)};
}

std::vector<Value*> DynamicQuantizeLinear(Builder& b, const CompositeArguments& arguments) {
  const lower::DynamicallyQuantized y = lower::QuantizeDynamically(b, arguments.value("x"));
  return {b.Cast(y.steps, DType::kInt32), y.scale, b.Cast(y.zero, DType::kInt32)};
}

std::optional<int64_t> LengthOf(const CompositeArguments& arguments, std::string_view name) {
  if (!arguments.value(name)) return std::nullopt;
  return arguments.Int(name, 1, 1, lower::kGreatestTable);
}

std::vector<Value*> FourierTransform(Builder& b, const CompositeArguments& arguments) {
  return {lower::DiscreteTransform(b, arguments.value("input"), AxisOf(arguments, "input", -2),
                                   LengthOf(arguments, "dft_length"),
                                   arguments.Int("inverse", 0) != 0,
                                   arguments.Int("onesided", 0) != 0)};
}

std::vector<Value*> ShortTimeTransform(Builder& b, const CompositeArguments& arguments) {
  return {lower::ShortTimeTransform(
      b, arguments.value("signal"), arguments.value("window"), LengthOf(arguments, "frame_length"),
      arguments.Int("frame_step", 1, 1, lower::kGreatestTable), arguments.Int("onesided", 1) != 0)};
}

template <const lower::Cosines& kCosines>
std::vector<Value*> Window(Builder& b, const CompositeArguments& arguments) {
  Value* size = Int32(arguments, "size");
  const bool periodic = arguments.Int("periodic", 1) != 0;
  if (!size->is_constant())
    return {lower::WindowAtRunTime(b, kCosines, AsScalar(b, size), periodic)};
  const int64_t length = arguments.Int("size", 0, 0, lower::kGreatestTable);
  return {b.Const(lower::WindowOf(kCosines, length, periodic).Cast(DType::kFp32))};
}

std::vector<Value*> MelWeightMatrix(Builder& b, const CompositeArguments& arguments) {
  const Tensor weights = lower::MelWeights(
      arguments.Int("num_mel_bins", 1, 1, 1 << 16), arguments.Int("dft_length", 1, 1, 1 << 24),
      arguments.Int("sample_rate", 1, 1, 1 << 30), arguments.Float("lower_edge_hertz"),
      arguments.Float("upper_edge_hertz"));
  return {b.Const(weights.Cast(DType::kFp32))};
}

constexpr char kSquare[] = "square matrices of constant size, up to 64";

constexpr char kAtRunTime[] = "the result has the values of `to` as fp32, int32 or bool";
constexpr char kFromEnd[] = "elements at indices, which count from the end if they are negative";

// Sorted by name: name, what it computes, condition, parameters, how many of them are required,
// lowering.
constexpr Composite kComposites[] = {
    {"com.microsoft.Inverse",
     "inverse of square matrices",
     kSquare,
     {"X"},
     1,
     OfSquare<lower::Inverse>},
    {"onnx.BitCast",
     "the bits of input as another type of the same width",
     "at run time only 8- and 16-bit integers, fp32 and int32; NaN payloads are not preserved",
     {"input", "to"},
     2,
     ToType<lower::BitCast>},
    {"onnx.BitShift",
     "bits of X moved by Y",
     "shifts to the right",
     {"X", "Y", "direction"},
     3,
     BitShift},
    {"onnx.BitwiseAnd", "bits in A and B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsAnd>},
    {"onnx.BitwiseOr", "bits in A or B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsOr>},
    {"onnx.BitwiseXor", "bits in one of A and B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsXor>},
    {"onnx.BlackmanWindow",
     "Blackman window of a size",
     "int32",
     {"size", "periodic"},
     1,
     Window<lower::kBlackman>},
    {"onnx.Cast",
     "input converted to another type; narrow integers wrap, floats are rounded",
     kAtRunTime,
     {"input", "to"},
     2,
     ToType<lower::Convert>},
    {"onnx.DFT",
     "discrete Fourier transform of [..., length, 1 or 2]",
     "lengths are constant",
     {"input", "dft_length", "axis", "inverse", "onesided"},
     1,
     FourierTransform},
    {"onnx.DequantizeLinear",
     "(x - x_zero_point) * x_scale, per tensor, axis or block",
     "",
     {"x", "x_scale", "x_zero_point", "axis", "block_size"},
     2,
     DequantizeLinear},
    {"onnx.Det", "determinant of square matrices", kSquare, {"X"}, 1, OfSquare<lower::Determinant>},
    {"onnx.DynamicQuantizeLinear",
     "x as integers from 0 to 255, with their scale and zero point",
     "the integers are int32",
     {"x"},
     1,
     DynamicQuantizeLinear},
    {"onnx.Einsum",
     "Einstein summation over any number of tensors, e.g. \"bhid,bhjd->bhij\"",
     "the sizes of a diagonal are equal, and at most 4096",
     {"Inputs", "equation"},
     2,
     Einsum,
     true},
    {"onnx.Gather", kFromEnd, "", {"data", "indices", "axis"}, 2, Gather},
    {"onnx.GatherElements",
     kFromEnd,
     "indices have the sizes of data, except along the axis",
     {"data", "indices", "axis"},
     2,
     GatherElements},
    {"onnx.GatherND",
     "elements at index vectors; negative indices count from the end",
     "",
     {"data", "indices", "batch_dims"},
     2,
     GatherVectors},
    {"onnx.HammingWindow",
     "Hamming window of a size",
     "int32",
     {"size", "periodic"},
     1,
     Window<lower::kHamming>},
    {"onnx.HannWindow",
     "Hann window of a size",
     "int32",
     {"size", "periodic"},
     1,
     Window<lower::kHann>},
    {"onnx.MatMul",
     "matrix product by NumPy's rules for vectors and leading dimensions",
     "",
     {"A", "B"},
     2,
     MatMul},
    {"onnx.MatMulInteger",
     "exact matrix product of integers minus their zero points, in int32",
     "integers of 8 or 16 bits",
     {"A", "B", "a_zero_point", "b_zero_point"},
     2,
     MatMulInteger},
    {"onnx.MelWeightMatrix",
     "triangular filters over the bins of a spectrum",
     "all arguments are constant",
     {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"},
     5,
     MelWeightMatrix},
    {"onnx.QuantizeLinear",
     "x / y_scale + y_zero_point, rounded and saturated, per tensor, axis or block",
     "the integers are int32, in the range of the zero point's type (default: uint8)",
     {"x", "y_scale", "y_zero_point", "axis", "block_size"},
     2,
     QuantizeLinear},
    {"onnx.STFT",
     "short-time Fourier transform of [batch, length, 1 or 2]",
     "frame_step and frame_length are constant",
     {"signal", "frame_step", "window", "frame_length", "onesided"},
     2,
     ShortTimeTransform},
    {"onnx.ScatterElements",
     "data with updates at indices along an axis; negative indices count from the end",
     "",
     {"data", "indices", "updates", "axis", "reduction"},
     3,
     ScatterElements},
    {"onnx.ScatterND",
     "data with updates at index vectors; negative indices count from the end",
     "",
     {"data", "indices", "updates", "reduction"},
     3,
     ScatterVectors},
    {"onnx.TopK",
     "the K first elements in order, and their indices",
     "K is at most the size of the axis",
     {"X", "K", "axis", "largest"},
     2,
     TopK},
    {"onnx.Unique",
     "distinct elements, first occurrences, inverse indices, counts",
     "at most 2^26 comparisons",
     {"X", "axis", "sorted"},
     1,
     Unique},
};

}  // namespace

const Operands& CompositeArguments::At(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  MLC_CHECK(found != names_.end(), "no parameter {}", name);
  return operands_[static_cast<size_t>(found - names_.begin())];
}

Value* CompositeArguments::value(std::string_view name) const {
  const Operands& operands = At(name);
  if (operands.empty()) return nullptr;
  if (!operands[0].value) throw Error("bad-operand", "\"{}\" is a string", name);
  return operands[0].value;
}

std::vector<Value*> CompositeArguments::values(std::string_view name) const {
  std::vector<Value*> found;
  for (const Operand& operand : At(name)) {
    if (!operand.value) throw Error("bad-operand", "\"{}\" is a string", name);
    found.push_back(operand.value);
  }
  return found;
}

int64_t CompositeArguments::Int(std::string_view name, int64_t otherwise, int64_t low,
                                int64_t high) const {
  const int64_t number = Int(name, otherwise);
  if (number < low || number > high)
    throw Error("bad-attribute", "{} is {}", name, number).Expected("{} to {}", low, high);
  return number;
}

double CompositeArguments::Float(std::string_view name) const {
  const Tensor& constant = At(name)[0].constant();
  if (!constant || constant.size() != 1 || constant.dtype() == DType::kString)
    throw Error("needs-constant", "\"{}\" must be a constant number", name);
  return constant.Double(0);
}

int64_t CompositeArguments::Int(std::string_view name, int64_t otherwise) const {
  if (At(name).empty()) return otherwise;
  const Tensor& constant = At(name)[0].constant();
  if (!constant || constant.size() != 1 || !IsInteger(constant.dtype()))
    throw Error("needs-constant", "\"{}\" must be a constant integer", name);
  return constant.Int(0);
}

std::string CompositeArguments::String(std::string_view name, std::string_view otherwise) const {
  if (At(name).empty()) return std::string(otherwise);
  const Tensor& constant = At(name)[0].constant();
  if (!constant || constant.size() != 1 || constant.dtype() != DType::kString)
    throw Error("needs-constant", "\"{}\" must be a string", name);
  return constant.strings()[0];
}

std::span<const std::string_view> Composite::names() const {
  const auto end = std::ranges::find(parameters, std::string_view());
  return {parameters.begin(), static_cast<size_t>(end - parameters.begin())};
}

std::span<const Composite> Composites() { return kComposites; }

std::vector<Refused> RefusedOperators() {
  std::vector<Refused> list = {
      {"_const_symbolic", "it exists in the Python part of coremltools only"},
      {"const", "mlc_block_constant adds constants"},
      {"conv_quantized", "it exists in the Python part of coremltools only"},
      {"custom_layer", "only the code of an app can run it"},
  };
  for (const auto& [name, why] : driver::OnnxOperatorNames())
    if (!FindComposite(name))
      list.push_back(
          {name, why.empty() ? "only models have it, which mlc_program_open imports" : why});
  return list;
}

const Composite* FindComposite(std::string_view name) {
  const auto found = std::ranges::find(kComposites, name, &Composite::name);
  return found == std::end(kComposites) ? nullptr : found;
}

}  // namespace mlc::abi
