#include "tools/runtime/composites.h"

#include <algorithm>

#include "lib/lower/bits.h"
#include "lib/lower/gaussian_elimination.h"
#include "lib/lower/scatter.h"
#include "lib/lower/sort.h"

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

constexpr char kSquare[] = "square matrices of constant size, up to 64";

// Sorted by name.
constexpr Composite kComposites[] = {
    {"com.microsoft.Inverse",
     "inverse of square matrices",
     kSquare,
     {"X"},
     1,
     OfSquare<lower::Inverse>},
    {"onnx.BitShift",
     "bits of X moved by Y",
     "shifts to the right",
     {"X", "Y", "direction"},
     3,
     BitShift},
    {"onnx.BitwiseAnd", "bits in A and B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsAnd>},
    {"onnx.BitwiseOr", "bits in A or B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsOr>},
    {"onnx.BitwiseXor", "bits in one of A and B", "int32", {"A", "B"}, 2, Bitwise<lower::BitsXor>},
    {"onnx.Det", "determinant of square matrices", kSquare, {"X"}, 1, OfSquare<lower::Determinant>},
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

const Composite* FindComposite(std::string_view name) {
  const auto found = std::ranges::find(kComposites, name, &Composite::name);
  return found == std::end(kComposites) ? nullptr : found;
}

}  // namespace mlc::abi
