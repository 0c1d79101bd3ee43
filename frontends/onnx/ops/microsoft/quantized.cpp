// com.microsoft: operators on quantized tensors, computed on dequantized values.
#include "frontends/onnx/ops/quantized.h"

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Returns the dequantized tensor whose x, scale and zero point are the inputs from `first` on.
Value* Real(Node& node, int first) {
  return Dequantize(node, node.In(first), SchemeOf(node, first + 1, first + 2, node.dtype(first)),
                    DType::kFp32);
}

// Sets output 0 to `real`, quantized with the inputs `scale` and `zero` (or to type `integers` if
// there is no zero point).
void SetQuantized(Node& node, Value* real, int scale, int zero, DType integers) {
  if (node.HasInput(zero)) integers = node.dtype(zero);
  node.Set(Quantize(node, real, SchemeOf(node, scale, zero, integers)), integers);
}

constexpr char kAdd[] = "add", kMul[] = "mul";

// Inputs: A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero.
template <const char* kMil>
void Binary(Node& node) {
  Value* real = node.Make(kMil, {{"x", Real(node, 0)}, {"y", Real(node, 3)}});
  SetQuantized(node, real, 6, 7, node.dtype(0));
}

// Inputs: X, X_scale, X_zero, Y_scale, Y_zero. Dequantizes X, applies an ai.onnx operator and
// quantizes the result.
void Around(Node& node, std::string_view op, int opset,
            std::initializer_list<std::string_view> attributes,
            const std::vector<Attribute>& others = {}) {
  bool channels_last = node.Int("channels_last", 0) != 0;
  Value* x = Real(node, 0);
  if (channels_last) x = ChannelsMoved(node, x, false);
  Value* y = node.Apply(op, opset, {{x, DType::kFp32}}, attributes, others);
  if (channels_last) y = ChannelsMoved(node, y, true);
  SetQuantized(node, y, 3, 4, node.dtype(0));
}

void AveragePool(Node& node) {
  Around(node, "AveragePool", 11,
         {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
}
void GlobalAveragePool(Node& node) { Around(node, "GlobalAveragePool", 1, {}); }
void LeakyRelu(Node& node) { Around(node, "LeakyRelu", 6, {"alpha"}); }
void Sigmoid(Node& node) { Around(node, "Sigmoid", 6, {}); }
void ReduceMean(Node& node) { Around(node, "ReduceMean", 13, {"axes", "keepdims"}); }

// Before opset 13 of ai.onnx, `axis` splits the dimensions into two groups.
void Softmax(Node& node) {
  int64_t opset = node.Int("opset", 13);
  Around(node, "Softmax", opset < 13 ? 11 : 13, {"axis"});
}

Bound Requantized(Node& node, int first, int scale, int zero) {
  DType integers = node.HasInput(zero) ? node.dtype(zero) : node.dtype(first);
  Value* value = Quantize(node, Real(node, first), SchemeOf(node, scale, zero, integers));
  if (!value->is_constant()) value = node.builder().Cast(value, DType::kInt32);
  return {value, integers};
}

// Inputs: Y_scale, Y_zero, and x, scale and zero point of each operand.
void Concat(Node& node) {
  std::vector<Value*> parts;
  DType integers = node.dtype(1);
  for (int i = 2; i < node.inputs(); i += 3) parts.push_back(Requantized(node, i, 0, 1).value);
  if (parts.empty()) node.Fail("bad-graph", "no inputs to concatenate are given");
  int64_t axis = node.Axis(node.Int("axis"), parts[0]->type.rank());
  node.Set(Concat(node, parts, axis), integers);
}

// Inputs: condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero.
void Where(Node& node) {
  Bound a = Requantized(node, 1, 7, 8), b = Requantized(node, 4, 7, 8);
  node.Set(Select(node, node.In(0), a.value, b.value), a.dtype);
}

// (A - A_zero) * (B - B_zero) in int32.
void MulInteger(Node& node) {
  auto factor = [&](int value, int zero) {
    Value* x = lower::Convert(node, node.In(value), node.dtype(value), DType::kInt32);
    if (!node.HasInput(zero)) return x;
    Value* z = lower::Convert(node, node.In(zero), node.dtype(zero), DType::kInt32);
    return Binary(node, "sub", x, lower::Along(node, z, 0, 1));
  };
  node.Set(node.Make("mul", {{"x", factor(0, 1)}, {"y", factor(2, 3)}}), DType::kInt32);
}

void ReduceSumInteger(Node& node) {
  Value* x = lower::Convert(node, node.In(0), node.dtype(0), DType::kInt32);
  node.Set(node.Apply("ReduceSum", 11, {{x, DType::kInt32}}, {"axes", "keepdims"}), DType::kInt32);
}

constexpr NodeRow kMicrosoftQuantizedRows[] = {
    Microsoft("MulInteger", MulInteger),
    Microsoft("QLinearAdd", Binary<kAdd>),
    Microsoft("QLinearAveragePool", AveragePool),
    Microsoft("QLinearConcat", Concat),
    Microsoft("QLinearGlobalAveragePool", GlobalAveragePool),
    Microsoft("QLinearLeakyRelu", LeakyRelu),
    Microsoft("QLinearMul", Binary<kMul>),
    Microsoft("QLinearReduceMean", ReduceMean),
    Microsoft("QLinearSigmoid", Sigmoid),
    Microsoft("QLinearSoftmax", Softmax),
    Microsoft("QLinearWhere", Where),
    Microsoft("ReduceSumInteger", ReduceSumInteger),
};

}  // namespace

std::span<const NodeRow> MicrosoftQuantizedRows() { return kMicrosoftQuantizedRows; }

}  // namespace mlc::onnx
