// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "frontends/onnx/ops/quantized.h"

#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Requires a scale or zero point to match x along the axis, or to have one element per block.
void AgreeWith(Node& node, Value*& x, Value*& value, const lower::Scheme& scheme) {
  int rank = x->type.rank();
  if (!value || rank == 0 || Product(value->type.shape) == Dim(1)) return;
  int axis = node.Axis(scheme.axis, rank);
  if (scheme.block == 0 && value->type.rank() == 1)
    RequireEqualSize(node, x, axis, value, 0,
                     fmt::format("dimension {} and length of the scale or zero point", axis));
  if (scheme.block > 0 && value->type.rank() == rank)
    for (int i = 0; i < rank; ++i)
      if (i != axis)
        RequireEqualSize(node, x, i, value, i, "dimensions of x and of the scale or zero point");
}

}  // namespace

lower::Scheme SchemeOf(Node& node, int scale, int zero, DType integers) {
  return {.scale = node.In(scale),
          .zero = node.Optional(zero),
          .integers = integers,
          .target = node.target().value_or(Opset::kIos17)};
}

Value* Quantize(Node& node, Value* x, lower::Scheme scheme) {
  for (Value** value : {&scheme.scale, &scheme.zero}) AgreeWith(node, x, *value, scheme);
  return lower::Quantize(node, x, scheme);
}

Value* Dequantize(Node& node, Value* x, lower::Scheme scheme, DType to) {
  bool known = x->is_constant() && scheme.scale->is_constant() &&
               (!scheme.zero || scheme.zero->is_constant());
  if (!known)
    for (Value** value : {&scheme.scale, &scheme.zero}) AgreeWith(node, x, *value, scheme);
  return lower::Dequantize(node, x, scheme, to);
}

lower::Factor Centered(Node& node, Value* value, Value* zero, DType integers) {
  return lower::Centered(node, value, zero, integers, [&](Value* changed, Value* before) {
    return OfShape(node, changed, before, "the tensor minus its zero point");
  });
}

Value* Requantize(Node& node, Value* sum, Value* scale, Value* zero, DType integers) {
  return lower::Requantize(node, sum, scale, zero, integers, [&](Value* changed, Value* before) {
    return OfShape(node, changed, before, "the quantized tensor");
  });
}

Value* ChannelsMoved(Node& node, Value* x, bool to_last) {
  int rank = x->type.rank();
  if (rank < 3) return x;
  std::vector<int64_t> perm = Consecutive(0, rank);
  if (to_last)
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  else
    std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return Transposed(node, x, perm);
}

namespace {

DType TypeAttribute(Node& node, std::string_view name, DType fallback) {
  int64_t number = node.Int(name, 0);
  if (number == 0) return fallback;
  DType dtype = ToDType(static_cast<int>(number));
  if (dtype == DType::kNone)
    node.Fail("unsupported-dtype", "{} is the unsupported type {}", name,
              DataTypeName(static_cast<int>(number)));
  return dtype;
}

void ReadAxis(Node& node, lower::Scheme& scheme) {
  scheme.axis = node.Int("axis", 1);
  scheme.block = node.Int("block_size", 0);
  if (scheme.block < 0)
    node.Fail("bad-attribute", "block_size is {}, expected at least 0", scheme.block);
}

void QuantizeLinear(Node& node) {
  node.Ignore({"saturate"});  // applies to 8-bit floats only
  DType integers = node.HasInput(2) ? node.dtype(2) : DType::kUint8;
  integers = TypeAttribute(node, "output_dtype", integers);
  if (node.HasInput(2) && node.dtype(2) != integers)
    node.Fail("bad-operand", "the zero point has type {}, but output_dtype is {}",
              Name(node.dtype(2)), Name(integers));
  lower::Scheme scheme = SchemeOf(node, 1, 2, integers);
  ReadAxis(node, scheme);
  // The division uses the type of the scale unless `precision` is given.
  DType precision = TypeAttribute(node, "precision", node.dtype(1));
  Value* x = lower::Convert(node, node.In(0), node.dtype(0), lower::FloatType(precision));
  if (x->is_constant()) x = node.Const(x->constant().Cast(lower::FloatType(precision)));
  node.Set(Quantize(node, x, scheme), integers);
}

void DequantizeLinear(Node& node) {
  lower::Scheme scheme = SchemeOf(node, 1, 2, node.dtype(0));
  ReadAxis(node, scheme);
  DType to = TypeAttribute(node, "output_dtype", node.dtype(1));
  if (scheme.zero && node.dtype(2) != node.dtype(0))
    node.Fail("bad-operand", "the zero point has type {}, but x has type {}", Name(node.dtype(2)),
              Name(node.dtype(0)));
  node.Set(Dequantize(node, node.In(0), scheme, to), to);
}

void DynamicQuantizeLinear(Node& node) {
  lower::DynamicallyQuantized y = lower::QuantizeDynamically(node, node.In(0));
  node.Set(0, node.builder().Cast(y.steps, DType::kInt32), DType::kUint8);
  node.Set(1, y.scale, DType::kFp32);
  node.Set(2, node.builder().Cast(y.zero, DType::kInt32), DType::kUint8);
}

constexpr NodeRow kQuantizedRows[] = {
    {"DequantizeLinear", DequantizeLinear, 10},
    Microsoft("DequantizeLinear", DequantizeLinear),
    {"DynamicQuantizeLinear", DynamicQuantizeLinear, 11},
    {"QuantizeLinear", QuantizeLinear, 10},
    Microsoft("QuantizeLinear", QuantizeLinear),
};

}  // namespace

std::span<const NodeRow> QuantizedRows() { return kQuantizedRows; }

}  // namespace mlc::onnx
