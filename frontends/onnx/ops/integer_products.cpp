// Products of integers: ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul and com.microsoft
// operators.

#include "frontends/onnx/ops/quantized.h"
#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Returns a float input as fp32.
Value* Float(Node& node, int input) {
  return lower::Convert(node, node.In(input), node.dtype(input), DType::kFp32);
}

// Convolves x [N, C, ...] with weight [M, C / group, ...]. The zero point of the weight is a scalar
// or has M elements.
lower::Factor ConvolveIntegers(Node& node, Value* x, Value* x_zero, DType x_type, Value* weight,
                               Value* weight_zero, DType weight_type) {
  int rank = weight->type.rank();
  const Shape& shape = weight->type.shape;
  if (rank < 3 || !IsStatic(shape))
    node.Fail("bad-operand", "the weight has no spatial dimensions");
  if (x_zero) x_zero = lower::Along(node, x_zero, 0, 1);
  if (weight_zero) weight_zero = lower::Along(node, weight_zero, 0, rank);
  lower::Factor left = Centered(node, x, x_zero, x_type);
  lower::Factor right = Centered(node, weight, weight_zero, weight_type);
  Dims dims = StaticDims(shape);
  int64_t terms = ElementCount(Dims(dims.begin() + 1, dims.end()));
  if (right.value->is_constant() && terms > 0)
    right.reach = lower::Reach(right.value->constant(), dims[0], terms, 1);
  return ExactProduct(node, left, right, static_cast<double>(terms),
                      [&](Value* a, Value* b) { return Convolve(node, a, b, nullptr); });
}

void ConvInteger(Node& node) {
  lower::Factor sum = ConvolveIntegers(node, node.In(0), node.Optional(2), node.dtype(0),
                                       node.In(1), node.Optional(3), node.dtype(1));
  node.Set(node.builder().Cast(sum.value, DType::kInt32), DType::kInt32);
}

Value* OfRows(Node& node, Value* value) { return value ? lower::OverRows(node, value) : nullptr; }
Value* OfColumns(Node& node, Value* value) {
  return value ? lower::OverColumns(node, value) : nullptr;
}

// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B (int32 with scale x_scale *
// w_scale).
void QLinearConv(Node& node) {
  bool channels_last = node.Int("channels_last", 0) != 0;
  Value* x = node.In(0);
  if (channels_last) x = ChannelsMoved(node, x, false);
  lower::Factor sum = ConvolveIntegers(node, x, node.Optional(2), node.dtype(0), node.In(3),
                                       node.Optional(5), node.dtype(3));
  int rank = x->type.rank();
  if (Value* bias = node.Optional(8)) {
    RequireEqualSize(node, sum.value, 1, bias, 0,
                     "number of output channels and length of the bias");
    sum = lower::PlusInteger(node, sum, lower::Along(node, bias, 1, rank));
  }
  Value* w_scale = Float(node, 4);
  Value* scale = Binary(node, "mul", Float(node, 1), w_scale);
  scale = Binary(node, "real_div", scale, Float(node, 6));
  Value* zero = node.Optional(7);
  DType integers = zero ? node.dtype(7) : node.dtype(0);
  zero = OfColumns(node, zero);
  Value* y = Requantize(node, sum.value, lower::Along(node, scale, 1, rank), zero, integers);
  node.Set(channels_last ? ChannelsMoved(node, y, true) : y, integers);
}

void MatMulInteger(Node& node) {
  Value* zero = node.Optional(2);
  if (zero && node.rank(0) > 1) zero = OfRows(node, zero);
  lower::Factor b = Centered(node, node.In(1), OfColumns(node, node.Optional(3)), node.dtype(1));
  lower::Factor sum =
      lower::ExactMatrixProduct(node, Centered(node, node.In(0), zero, node.dtype(0)), b);
  node.Set(node.builder().Cast(sum.value, DType::kInt32), DType::kInt32);
}

// The inputs that describe a matrix.
struct Matrix {
  int value, scale, zero;
};
// Multiplies two matrices. Returns the product of their integers, and its scale.
std::pair<lower::Factor, Value*> ScaledProduct(Node& node, Matrix a, Matrix b) {
  lower::Factor right =
      Centered(node, node.In(b.value), OfColumns(node, node.Optional(b.zero)), node.dtype(b.value));
  lower::Factor left =
      Centered(node, node.In(a.value), OfRows(node, node.Optional(a.zero)), node.dtype(a.value));
  lower::Factor sum = lower::ExactMatrixProduct(node, left, right);
  Value* b_scale = OfColumns(node, Float(node, b.scale));
  return {sum, Binary(node, "mul", OfRows(node, Float(node, a.scale)), b_scale)};
}

// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
void QLinearMatMul(Node& node) {
  auto [sum, scale] = ScaledProduct(node, {0, 1, 2}, {3, 4, 5});
  scale = Binary(node, "real_div", scale, OfRows(node, Float(node, 6)));
  node.Set(Requantize(node, sum.value, scale, OfRows(node, node.Optional(7)), node.dtype(7)),
           node.dtype(7));
}

// sum * scale + bias in fp32; bias may be null.
Value* Scaled(Node& node, const lower::Factor& sum, Value* scale, Value* bias) {
  Value* y = Binary(node, "mul", node.builder().Cast(sum.value, DType::kFp32), scale);
  y = OfShape(node, y, sum.value, "the product");
  return bias ? PlusLast(node, y, bias) : y;
}

// Inputs: A, B, a_scale, b_scale, a_zero, b_zero, bias.
void MatMulIntegerToFloat(Node& node) {
  auto [sum, scale] = ScaledProduct(node, {0, 2, 4}, {1, 3, 5});
  Value* bias = node.HasInput(6) ? Float(node, 6) : nullptr;
  Value* y = Scaled(node, sum, scale, bias);
  node.Set(lower::Convert(node, y, DType::kFp32, node.dtype(2)), node.dtype(2));
}

// Inputs: A (floats), B, b_scale, b_zero, bias.
void DynamicQuantizeMatMul(Node& node) {
  lower::DynamicallyQuantized a = lower::QuantizeDynamically(node, node.In(0));
  lower::Factor left{Binary(node, "sub", a.steps, a.zero), 255, 0};
  lower::Factor sum = lower::ExactMatrixProduct(
      node, left, Centered(node, node.In(1), OfColumns(node, node.Optional(3)), node.dtype(1)));
  Value* scale = Binary(node, "mul", a.scale, OfColumns(node, Float(node, 2)));
  node.Set(Scaled(node, sum, scale, node.HasInput(4) ? Float(node, 4) : nullptr), DType::kFp32);
}

lower::Factor Transposed(Node& node, lower::Factor factor, bool transposed) {
  if (transposed) factor.value = Transposed(node, factor.value, {1, 0});
  return factor;
}

// Inputs: A, a_scale, a_zero, B, b_scale, b_zero, C (int32), y_scale, y_zero. The result is integer
// if y_scale is given, else float.
void QGemm(Node& node) {
  double alpha = node.Float("alpha", 1.0);
  lower::Factor a =
      Transposed(node, Centered(node, node.In(0), OfColumns(node, node.Optional(2)), node.dtype(0)),
                 node.Int("transA", 0) != 0);
  bool transposed = node.Int("transB", 0) != 0;
  Value* zero = node.Optional(5);
  zero = transposed ? OfRows(node, zero) : OfColumns(node, zero);
  lower::Factor b = Transposed(node, Centered(node, node.In(3), zero, node.dtype(3)), transposed);
  lower::Factor sum = lower::ExactMatrixProduct(node, a, b);
  if (Value* addend = node.Optional(6)) sum = lower::PlusInteger(node, sum, addend);
  Value* b_scale = OfColumns(node, Float(node, 4));
  Value* scale = Binary(node, "mul", OfColumns(node, Float(node, 1)), b_scale);
  if (alpha != 1) scale = Binary(node, "mul", scale, alpha);
  if (!node.HasInput(7)) return node.Set(Scaled(node, sum, scale, nullptr), DType::kFp32);
  scale = Binary(node, "real_div", scale, OfColumns(node, Float(node, 7)));
  DType integers = node.HasInput(8) ? node.dtype(8) : node.dtype(0);
  node.Set(Requantize(node, sum.value, scale, OfColumns(node, node.Optional(8)), integers),
           integers);
}

constexpr NodeRow kIntegerProductRows[] = {
    {"ConvInteger", ConvInteger, 10},
    Microsoft("DynamicQuantizeMatMul", DynamicQuantizeMatMul),
    {"MatMulInteger", MatMulInteger, 10},
    Microsoft("MatMulIntegerToFloat", MatMulIntegerToFloat),
    Microsoft("QGemm", QGemm),
    {"QLinearConv", QLinearConv, 10},
    Microsoft("QLinearConv", QLinearConv),
    {"QLinearMatMul", QLinearMatMul, 10},
};

}  // namespace

std::span<const NodeRow> IntegerProductRows() { return kIntegerProductRows; }

}  // namespace mlc::onnx
