// com.microsoft: activations, normalizations, fused products, and operators that ai.onnx has
// adopted since.
#include <algorithm>

#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"
#include "lib/lower/indices.h"
#include "lib/lower/matrix_products.h"
#include "lib/networks/norms.h"

namespace mlc::onnx {

namespace {

Value* GeluOf(Node& node, Value* x, bool tanh) {
  return node.Make("gelu", {{"x", x}, {"mode", tanh ? "TANH_APPROXIMATION" : "EXACT"}});
}

// Adds input i, a vector over the last dimension of x, if present.
Value* PlusBias(Node& node, Value* x, int i) {
  return node.HasInput(i) ? PlusLast(node, x, node.In(i)) : x;
}

void Gelu(Node& node) { node.SetAlike(GeluOf(node, node.In(0), false)); }
void BiasGelu(Node& node) { node.SetAlike(GeluOf(node, PlusBias(node, node.In(0), 1), false)); }
void FastGelu(Node& node) { node.SetAlike(GeluOf(node, PlusBias(node, node.In(0), 1), true)); }
void GemmFastGelu(Node& node) {
  Value* product = lower::MatrixProduct(node, node.In(0), node.In(1));
  node.SetAlike(GeluOf(node, PlusBias(node, product, 2), true));
}
void QuickGelu(Node& node) {
  Value* x = node.In(0);
  Value* scaled = Binary(node, "mul", x, node.Float("alpha", 1.702f));
  node.SetAlike(Binary(node, "mul", x, node.Make("sigmoid", {{"x", scaled}})));
}
void BiasAdd(Node& node) {
  node.SetAlike(Binary(node, "add", PlusBias(node, node.In(0), 1), node.In(2)));
}
void BiasSplitGelu(Node& node) {
  Value* x = PlusBias(node, node.In(0), 1);
  std::vector<Value*> halves = node.builder().MakeAll(
      "split", {{"x", x}, {"num_splits", 2}, {"axis", static_cast<int64_t>(x->type.rank() - 1)}});
  node.SetAlike(Binary(node, "mul", halves[0], GeluOf(node, halves[1], false)));
}

// Applies the activation named by attribute `activation`.
Value* Activated(Node& node, Value* x, const std::vector<double>& params) {
  std::string name = node.String("activation", "");
  auto param = [&](size_t i, double fallback) { return i < params.size() ? params[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu") return node.Make("relu", {{"x", x}});
  if (name == "Sigmoid") return node.Make("sigmoid", {{"x", x}});
  if (name == "Tanh") return node.Make("tanh", {{"x", x}});
  if (name == "LeakyRelu") return node.Make("leaky_relu", {{"x", x}, {"alpha", param(0, 0.01)}});
  if (name == "Elu") return node.Make("elu", {{"x", x}, {"alpha", param(0, 1)}});
  if (name == "Softplus") return node.Make("softplus", {{"x", x}});
  if (name == "Softsign") return node.Make("softsign", {{"x", x}});
  if (name == "HardSigmoid")
    return node.Make("sigmoid_hard", {{"x", x}, {"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  if (name == "Clip")
    return node.Make("clip", {{"x", x},
                              {"alpha", param(0, std::numeric_limits<float>::lowest())},
                              {"beta", param(1, std::numeric_limits<float>::max())}});
  node.Unsupported("activation", "activation=\"{}\"", name);
}

// Adds input 3, which must have the shape of y.
Value* PlusAlike(Node& node, Value* y) {
  if (!node.HasInput(3)) return y;
  Value* z = node.In(3);
  RequireSameShape(node, y, z, "shapes of the result and of the addend");
  return Binary(node, "add", y, z);
}

// Inputs: X, W, B, Z. Z is added before the activation.
void FusedConv(Node& node) {
  Value* y = PlusAlike(node, Convolve(node, node.In(0), node.In(1), node.Optional(2)));
  node.SetAlike(Activated(node, y, node.Floats("activation_params", std::vector<double>{})));
}

// Like FusedConv, but channels last; the weight is still [M, C / group, kH, kW].
void NhwcConv(Node& node) {
  if (node.rank() != 4) node.Fail("bad-operand", "the input must have four dimensions");
  Value* x = Transposed(node, node.In(0), {0, 3, 1, 2});
  Value* y = Convolve(node, x, node.In(1), node.Optional(2));
  y = PlusAlike(node, Transposed(node, y, {0, 2, 3, 1}));
  node.SetAlike(Activated(node, y, node.Floats("activation_params", std::vector<double>{})));
}

void NhwcMaxPool(Node& node) {
  if (node.rank() != 4) node.Fail("bad-operand", "the input must have four dimensions");
  Value* x = Transposed(node, node.In(0), {0, 3, 1, 2});
  Value* y = node.Apply("MaxPool", 12, {{x, node.dtype()}},
                        {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  node.SetAlike(Transposed(node, y, {0, 2, 3, 1}));
}

std::vector<double> ActivationParams(Node& node) {
  std::vector<double> params;
  for (std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (node.Has(name)) params.push_back(node.Float(name));
  return params;
}

void FusedGemm(Node& node) {
  Value* y = node.Apply("Gemm", 13, {node.Input(0), node.Input(1), node.Input(2)},
                        {"alpha", "beta", "transA", "transB"});
  node.SetAlike(Activated(node, y, ActivationParams(node)));
}

// Transposes an operand of a product: moves the first dimension after the batch dimensions if
// `batch`, then swaps the last two if `matrix`.
Value* Turned(Node& node, Value* x, bool batch, bool matrix) {
  int rank = x->type.rank();
  if (rank < 2) return x;
  std::vector<int64_t> perm = Consecutive(0, rank);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[rank - 2], perm[rank - 1]);
  return std::ranges::is_sorted(perm) ? x : Transposed(node, x, perm);
}

Value* ScaledProduct(Node& node) {
  Value* a = Turned(node, node.In(0), node.Int("transBatchA", 0) != 0, node.Int("transA", 0) != 0);
  Value* b = Turned(node, node.In(1), node.Int("transBatchB", 0) != 0, node.Int("transB", 0) != 0);
  double alpha = node.Float("alpha", 1.0);
  Value* y = lower::MatrixProduct(node, a, b);
  return alpha == 1 ? y : Binary(node, "mul", y, alpha);
}

void FusedMatMul(Node& node) { node.SetAlike(ScaledProduct(node)); }
void FusedMatMulActivation(Node& node) {
  node.SetAlike(Activated(node, ScaledProduct(node), ActivationParams(node)));
}

// Normalizes the last dimension, without subtracting the mean if `simple`. Sets outputs `mean` and
// `inverse` if the node has them.
Value* LastNormalized(Node& node, Value* x, Value* scale, Value* shift, bool simple, double epsilon,
                      int mean_output, int inverse_output) {
  if (!simple && !node.HasOutput(mean_output) && !node.HasOutput(inverse_output))
    return OfShape(node, networks::LayerNorm(node, x, {-1}, scale, shift, epsilon), x,
                   "the normalized tensor");
  if (!simple) {
    Value* mean = networks::Mean(node, x, {-1});
    if (node.HasOutput(mean_output)) node.Set(mean_output, mean, DType::kFp32);
    x = Binary(node, "sub", x, mean);
  }
  networks::Normalized normal = networks::RmsNorm(node, x, {-1}, scale, shift, epsilon);
  if (node.HasOutput(inverse_output)) node.Set(inverse_output, normal.inverse, DType::kFp32);
  return OfShape(node, normal.y, x, "the normalized tensor");
}

void CheckLastAxis(Node& node) {
  if (node.Axis(node.Int("axis", -1), node.rank()) != node.rank() - 1)
    node.Unsupported("axis", "only the last axis is supported");
}

// Inputs: X, scale.
void SimplifiedLayerNormalization(Node& node) {
  CheckLastAxis(node);
  node.Ignore({"stash_type"});  // intermediate results are fp32 in any case
  Value* x = lower::Convert(node, node.In(0), node.dtype(0), node.dtype(1));
  node.Set(0,
           LastNormalized(node, x, node.In(1), nullptr, true, node.Float("epsilon", 1e-5f), -1, 1),
           node.dtype(1));
}

// Inputs: input, skip, gamma, (beta,) bias. Outputs: normalized tensor, mean, inverse standard
// deviation, sum of the inputs.
template <bool kSimple>
void SkipNormalization(Node& node) {
  int bias = kSimple ? 3 : 4;
  Value* sum = PlusBias(node, Binary(node, "add", node.In(0), node.In(1)), bias);
  node.Set(3, sum, node.dtype());
  node.Set(0,
           LastNormalized(node, sum, node.In(2), kSimple ? nullptr : node.Optional(3), kSimple,
                          node.Float("epsilon", 1e-12f), 1, 2),
           node.dtype());
}

Value* Rows(Node& node, Value* table, Value* indices) {
  return lower::CountingFromEnd(
      node.Make("gather", {{"x", table}, {"indices", indices}, {"axis", 0}}));
}

// Inputs: input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask,
// position_ids. Outputs: normalized tensor, number of unmasked tokens per row, sum of the
// embeddings.
void EmbedLayerNormalization(Node& node) {
  Value *ids = node.In(0), *positions = node.In(3);
  if (ids->type.rank() != 2) node.Fail("bad-operand", "input_ids must be a matrix");
  Value* sum = Rows(node, node.In(2), ids);
  auto with = [&](Value* table, int input) {
    Value* places = node.In(input);
    // A single row of position_ids may apply to the whole batch.
    bool row = input == 8 && places->type.rank() == 2 && places->type.shape[0] == Dim(1);
    if (row)
      RequireEqualSize(node, ids, 1, places, 1, "lengths of input_ids and position_ids");
    else
      RequireSameShape(node, ids, places, fmt::format("shapes of input_ids and input {}", input));
    return Binary(node, "add", sum, Rows(node, table, places));
  };
  if (node.HasInput(8)) {
    sum = with(positions, 8);
  } else {
    const Dim& length = ids->type.shape[1];
    if (!length.is_constant())
      node.Fail("dynamic-shape", "without position_ids, the sequence length must be constant");
    positions = SliceBetween(node, positions, {0, 0}, {length.constant(), 0}, {false, true});
    sum = Binary(node, "add", sum, positions);
  }
  if (node.HasInput(1) && node.HasInput(4)) sum = with(node.In(4), 1);
  DType dtype = node.dtype(2);
  node.Set(0,
           LastNormalized(node, sum, node.In(5), node.In(6), false, node.Float("epsilon", 1e-12f),
                          -1, -1),
           dtype);
  node.Ignore({"mask_index_type"});
  if (node.HasOutput(1)) {
    auto no_tokens = [&] {
      Value* rows = SliceBetween(node, node.Make("shape", {{"x", ids}}), {0}, {1});
      return node.Make("fill", {{"shape", rows}, {"value", 0}});
    };
    Value* count =
        node.HasInput(7) ? Reduced(node, "reduce_sum", node.In(7), {1}, false) : no_tokens();
    node.Set(1, count, DType::kInt32);
  }
  node.Set(2, sum, dtype);
}

// X is [N, H, W, C] or [N, C, H, W]; the channels are normalized in groups.
void GroupNorm(Node& node) {
  bool last = node.Int("channels_last", 1) != 0;
  int64_t activation = node.Int("activation");
  if (node.rank() != 4) node.Fail("bad-operand", "the input must have four dimensions");
  Value* x = node.In(0);
  if (last) x = Transposed(node, x, {0, 3, 1, 2});
  Attribute groups{"num_groups", "", Attribute::Kind::kInt, {}, {node.Int("groups")}, {}, {}, {}};
  Value* y = node.Apply("GroupNormalization", 21, {{x, node.dtype()}, node.Input(1), node.Input(2)},
                        {"epsilon"}, {groups});
  if (activation == 1) y = node.Make("silu", {{"x", y}});
  if (activation != 0 && activation != 1)
    node.Unsupported("activation", "activation={}", activation);
  node.SetAlike(last ? Transposed(node, y, {0, 2, 3, 1}) : y);
}

void GridSample(Node& node) {
  node.SetAlike(node.Apply("GridSample", 16, {node.Input(0), node.Input(1)},
                           {"align_corners", "mode", "padding_mode"}));
}
void Trilu(Node& node) {
  node.SetAlike(node.Apply("Trilu", 14, {node.Input(0), node.Input(1)}, {"upper"}));
}
void GatherNd(Node& node) {
  node.SetAlike(node.Apply("GatherND", 12, {node.Input(0), node.Input(1)}));
}
void Pad(Node& node) {
  node.SetAlike(node.Apply("Pad", 13, {node.Input(0), node.Input(1), node.Input(2)}, {"mode"}));
}
void Range(Node& node) {
  Bound step = node.Input(2);
  if (!step.value) step = {node.Const(Tensor::Full(node.dtype(), {}, 1)), node.dtype()};
  node.SetAlike(node.Apply("Range", 11, {node.Input(0), node.Input(1), step}));
}
void ExpandDims(Node& node) {
  int64_t axis = node.Constant(1, "axis").Int(0);
  axis = node.Axis(axis, node.rank() + 1);
  node.SetAlike(Expanded(node, node.In(0), {axis}));
}

constexpr NodeRow kMicrosoftFusedRows[] = {
    Microsoft("BiasAdd", BiasAdd),
    Microsoft("BiasGelu", BiasGelu),
    Microsoft("BiasSplitGelu", BiasSplitGelu),
    Microsoft("EmbedLayerNormalization", EmbedLayerNormalization),
    Microsoft("ExpandDims", ExpandDims).When("the axis is constant"),
    Microsoft("FastGelu", FastGelu),
    Microsoft("FusedConv", FusedConv),
    Microsoft("FusedGemm", FusedGemm),
    Microsoft("FusedMatMul", FusedMatMul),
    Microsoft("FusedMatMulActivation", FusedMatMulActivation),
    Microsoft("GatherND", GatherNd),
    Microsoft("Gelu", Gelu),
    Microsoft("GemmFastGelu", GemmFastGelu),
    Microsoft("GridSample", GridSample),
    Microsoft("GroupNorm", GroupNorm),
    Microsoft("NhwcConv", NhwcConv),
    Microsoft("NhwcFusedConv", NhwcConv),
    Microsoft("NhwcMaxPool", NhwcMaxPool),
    Microsoft("Pad", Pad),
    Microsoft("QuickGelu", QuickGelu),
    Microsoft("Range", Range),
    {"SimplifiedLayerNormalization", SimplifiedLayerNormalization},
    Microsoft("SimplifiedLayerNormalization", SimplifiedLayerNormalization),
    Microsoft("SkipLayerNormalization", SkipNormalization<false>),
    Microsoft("SkipSimplifiedLayerNormalization", SkipNormalization<true>),
    Microsoft("TransposeMatMul", FusedMatMul),
    Microsoft("Trilu", Trilu),
};

}  // namespace

std::span<const NodeRow> MicrosoftFusedRows() { return kMicrosoftFusedRows; }

}  // namespace mlc::onnx
