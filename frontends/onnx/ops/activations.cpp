#include <cmath>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

Value* Activation(Node& node, std::string_view op) { return node.Make(op, {{"x", node.In(0)}}); }

// MIL's relu takes floats only; integers must stay exact.
void Relu(Node& node) {
  if (IsInteger(node.dtype())) return node.SetAlike(Binary(node, "maximum", node.In(0), 0));
  node.SetAlike(Activation(node, "relu"));
}

void LeakyRelu(Node& node) {
  node.SetAlike(
      node.Make("leaky_relu", {{"x", node.In(0)}, {"alpha", node.Float("alpha", 0.01f)}}));
}

void Elu(Node& node) {
  node.SetAlike(node.Make("elu", {{"x", node.In(0)}, {"alpha", node.Float("alpha", 1.0)}}));
}

void Selu(Node& node) {
  // Opset 1 declares these defaults with fewer digits.
  bool old = node.opset() < 6;
  double alpha = node.Float("alpha", old ? 1.6732f : 1.67326319217681884765625f);
  double gamma = node.Float("gamma", old ? 1.0507f : 1.05070102214813232421875f);
  Value* elu = node.Make("elu", {{"x", node.In(0)}, {"alpha", alpha}});
  node.SetAlike(Binary(node, "mul", elu, gamma));
}

// max(0, x) + min(0, alpha * (e^(x / alpha) - 1)) is elu with a scaled argument and result. For
// alpha < 1 a large argument could overflow.
void Celu(Node& node) {
  double alpha = node.Float("alpha", 1.0);
  if (!(alpha > 0)) node.Unsupported("alpha", "alpha={}", alpha);
  Value* x = node.In(0);
  if (alpha != 1) x = Binary(node, "real_div", x, alpha);
  Value* elu = node.Make("elu", {{"x", x}, {"alpha", 1.0}});
  if (alpha != 1) elu = Binary(node, "mul", elu, alpha);
  if (alpha < 1) {
    Value* above = Binary(node, "greater", node.In(0), 0.0);
    elu = Select(node, above, node.In(0), elu);
  }
  node.SetAlike(elu);
}

void HardSigmoid(Node& node) {
  node.SetAlike(node.Make("sigmoid_hard", {{"x", node.In(0)},
                                           {"alpha", node.Float("alpha", 0.2f)},
                                           {"beta", node.Float("beta", 0.5)}}));
}

void HardSwish(Node& node) {
  Value* gate = node.Make("sigmoid_hard", {{"x", node.In(0)}, {"alpha", 1.0 / 6}, {"beta", 0.5}});
  node.SetAlike(Binary(node, "mul", node.In(0), gate));
}

void Mish(Node& node) {
  Value* gate = node.Make("tanh", {{"x", Activation(node, "softplus")}});
  node.SetAlike(Binary(node, "mul", node.In(0), gate));
}

void Gelu(Node& node) {
  std::string approximate = node.String("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    node.Unsupported("approximate", "approximate=\"{}\"", approximate);
  node.SetAlike(node.Make(
      "gelu",
      {{"x", node.In(0)}, {"mode", approximate == "tanh" ? "TANH_APPROXIMATION" : "EXACT"}}));
}

Value* Swished(Node& node) {
  double alpha = node.Float("alpha", 1.0);
  if (alpha == 1) return Activation(node, "silu");
  Value* gate = node.Make("sigmoid", {{"x", Binary(node, "mul", node.In(0), alpha)}});
  return Binary(node, "mul", node.In(0), gate);
}
void Swish(Node& node) { node.SetAlike(Swished(node)); }
void SwiGlu(Node& node) {
  node.SetAlike(node.Make("mul", {{"x", Swished(node)}, {"y", node.In(1)}}));
}

// ONNX keeps x > alpha, MIL x >= alpha. The next representable number above alpha makes them equal.
void ThresholdedRelu(Node& node) {
  float alpha = static_cast<float>(node.Float("alpha", 1.0));
  Value* x = node.In(0);
  if (node.dtype() == DType::kFp16) {
    Value* above = Binary(node, "greater", x, static_cast<double>(alpha));
    return node.SetAlike(Select(node, above, x, 0.0));
  }
  double bound = std::nextafter(alpha, std::numeric_limits<float>::infinity());
  node.SetAlike(node.Make("thresholded_relu", {{"x", x}, {"alpha", bound}}));
}

// x + bias if x < -lambd, x - bias if x > lambd, else 0.
void Shrink(Node& node) {
  double lambd = node.Float("lambd", 0.5), bias = node.Float("bias", 0.0);
  Value* x = node.In(0);
  if (!IsFloat(node.dtype()))
    node.Fail("unsupported-dtype", "operands of type {} are not supported", Name(node.dtype()));
  Value* raised = Binary(node, "add", x, bias);
  Value* lowered = Binary(node, "sub", x, bias);
  Value* below = Binary(node, "less", x, -lambd);
  Value* above = Binary(node, "greater", x, lambd);
  Value* upper = Select(node, above, lowered, 0.0);
  node.SetAlike(Select(node, below, raised, upper));
}

// A slope per channel becomes MIL's prelu (rank 4), a scalar slope leaky_relu, and any other slope
// a select: because a slope may be infinite, its product must not affect elements that are not
// negative.
void PRelu(Node& node) {
  Value *x = node.In(0), *slope = node.In(1);
  Tensor constant = node.ConstantOrNone(1);
  int rank = x->type.rank();
  if (constant && constant.size() == 1 && IsFloat(node.dtype()))
    return node.SetAlike(node.Make("leaky_relu", {{"x", x}, {"alpha", constant.Reshaped({})}}));
  // Before opset 7 a vector held one slope per channel; later opsets write it as [C, 1, 1].
  if (node.opset() < 7 && slope->type.rank() == 1 && rank > 2) {
    slope = VectorAlong(node, slope, 0, rank - 1);
    if (constant) constant = slope->constant();
  }
  bool channels = constant && rank >= 2 && x->type.shape[1] == Dim(constant.size());
  int position =
      constant ? constant.rank() - (rank - 1) : -1;  // position of the channel dimension in slope
  if (channels && rank == 4 && position >= 0 && constant.dims()[position] == constant.size())
    return node.SetAlike(
        node.Make("prelu", {{"x", x}, {"alpha", constant.Reshaped({constant.size()})}}));
  Builder::Arg zero = IsFloat(node.dtype()) ? Builder::Arg("y", 0.0) : Builder::Arg("y", 0);
  Value* below = node.Make("less", {{"x", x}, zero});
  Value* scaled = Binary(node, "mul", x, slope);
  node.SetAlike(Select(node, below, scaled, x));
}

// The axes that Softmax, LogSoftmax and Hardmax normalize together: before opset 13, all from
// `axis` on.
std::vector<int64_t> SoftmaxAxes(Node& node) {
  if (node.rank() == 0) node.Fail("bad-operand", "the input is a scalar, which has no axis");
  int rank = node.rank();
  if (node.opset() >= 13) return {node.Axis(node.Int("axis", -1), rank)};
  int64_t axis = node.Int("axis", 1);
  int first = axis == rank
                  ? rank
                  : node.Axis(axis, rank);  // axis == rank: each element is normalized alone
  std::vector<int64_t> axes;
  for (int i = first; i < rank; ++i)
    if (node.shape()[i] != Dim(1)) axes.push_back(i);
  if (axes.empty()) axes.push_back(std::min(first, rank - 1));
  return axes;
}

Value* LessMaximum(Node& node, const std::vector<int64_t>& axes) {
  Value* greatest = Reduced(node, "reduce_max", node.In(0), axes, true);
  return Binary(node, "sub", node.In(0), greatest);
}
Value* SumOfExp(Node& node, Value* exp, const std::vector<int64_t>& axes) {
  return Reduced(node, "reduce_sum", exp, axes, true);
}

void Softmax(Node& node) {
  std::vector<int64_t> axes = SoftmaxAxes(node);
  if (axes.size() == 1)
    return node.SetAlike(node.Make("softmax", {{"x", node.In(0)}, {"axis", axes[0]}}));
  Value* exp = node.Make("exp", {{"x", LessMaximum(node, axes)}});
  node.SetAlike(Binary(node, "real_div", exp, SumOfExp(node, exp, axes)));
}

void LogSoftmax(Node& node) {
  std::vector<int64_t> axes = SoftmaxAxes(node);
  Value* shifted = LessMaximum(node, axes);
  Value* sum = SumOfExp(node, node.Make("exp", {{"x", shifted}}), axes);
  Value* log = node.Make("log", {{"x", sum}, {"epsilon", 0.0}});
  node.SetAlike(Binary(node, "sub", shifted, log));
}

// 1 at the first maximum, else 0: compares the positions along the axis with argmax.
void Hardmax(Node& node) {
  std::vector<int64_t> axes = SoftmaxAxes(node);
  Value* x = node.In(0);
  if (axes.size() > 1) {
    x = node.Apply("Flatten", 13, {node.Input(0)}, {},
                   {{"axis", "", Attribute::Kind::kInt, {}, {axes[0]}}});
    axes = {1};
  }
  Value* best = node.Make("reduce_argmax", {{"x", x}, {"axis", axes[0]}, {"keep_dims", true}});
  std::vector<int64_t> others;
  for (int i = 0; i < x->type.rank(); ++i)
    if (i != axes[0]) others.push_back(i);
  Value* places = IndicesOf(node, x, static_cast<int>(axes[0]));
  if (!others.empty()) places = Expanded(node, places, others);
  Value* hot = Binary(node, "equal", best, places);
  Value* result = lower::Convert(node, hot, DType::kBool, node.dtype());
  if (x != node.In(0))
    result = node.Make("reshape", {{"x", result}, {"shape", ShapeOf(node, node.In(0))}});
  node.SetAlike(result);
}

// Experimental operators, removed in opset 10, that scale an argument or a result.
Value* Scaled(Node& node, Value* x, double factor) {
  return factor == 1 ? x : Binary(node, "mul", x, factor);
}
void Affine(Node& node) {
  Value* y = Scaled(node, node.In(0), node.Float("alpha", 1.0));
  node.SetAlike(Binary(node, "add", y, node.Float("beta", 0.0)));
}
void Scale(Node& node) { node.SetAlike(Binary(node, "mul", node.In(0), node.Float("scale", 1.0))); }
void ScaledTanh(Node& node) {
  Value* x = Scaled(node, node.In(0), node.Float("beta"));
  node.SetAlike(Scaled(node, node.Make("tanh", {{"x", x}}), node.Float("alpha")));
}
void ParametricSoftplus(Node& node) {
  Value* x = Scaled(node, node.In(0), node.Float("beta"));
  node.SetAlike(Scaled(node, node.Make("softplus", {{"x", x}}), node.Float("alpha")));
}

constexpr NodeRow kActivationRows[] = {
    {"Affine", Affine, 1, 9},
    {"Celu", Celu, 12},
    NodeRow("Elu", Elu).Direct(),
    NodeRow("Gelu", Gelu, 20).Direct(),
    NodeRow("HardSigmoid", HardSigmoid).Direct(),
    {"HardSwish", HardSwish, 14},
    {"Hardmax", Hardmax},
    NodeRow("LeakyRelu", LeakyRelu).Direct(),
    {"LogSoftmax", LogSoftmax},
    {"Mish", Mish, 18},
    NodeRow("PRelu", PRelu).Direct(),
    {"ParametricSoftplus", ParametricSoftplus, 1, 9},
    NodeRow("Relu", Relu).Direct(),
    {"Scale", Scale, 1, 9},
    {"ScaledTanh", ScaledTanh, 1, 9},
    {"Selu", Selu},
    {"Shrink", Shrink, 9},
    {"Sigmoid", "sigmoid(x)"},
    NodeRow("Softmax", Softmax).Direct(),
    {"Softplus", "softplus(x)"},
    {"Softsign", "softsign(x)"},
    {"SwiGLU", SwiGlu, 28},
    {"Swish", Swish, 24},
    {"Tanh", "tanh(x)"},
    NodeRow("ThresholdedRelu", ThresholdedRelu).Direct(),
};

}  // namespace

std::span<const NodeRow> ActivationRows() { return kActivationRows; }

}  // namespace mlc::onnx
