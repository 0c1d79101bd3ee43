// LinearAttention. lib/networks/linear_attention.h defines the letters in shapes.
#include "lib/networks/linear_attention.h"

#include <cmath>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// [B, T, width] -> [T, B, heads, rows, columns], computed in fp32.
Value* TokensFirst(Node& node, int input, int64_t heads, int64_t rows, int64_t columns) {
  Value* x = node.builder().Cast(node.In(input), DType::kFp32);
  const Shape& shape = node.shape(input);
  if (shape.size() != 3 || shape[2] != Dim(heads * rows * columns))
    node.Fail("bad-operand", "input {} is {}, expected {} elements per token", input,
              ToString(shape), heads * rows * columns);
  x = Transposed(node, x, {1, 0, 2});
  return Reshaped(node, x, {{x, 0}, {x, 1}, heads, rows, columns});
}

// Inputs: query [B, T, N * G * K], key [B, T, N * K], value [B, T, N * V], past_state [B, N, K, V],
// decay [B, T, N * K or N] (the logarithm of a factor), beta [B, T, N or 1].
void LinearAttention(Node& node) {
  node.Ignore({"chunk_size"});
  std::string rule = node.String("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta";
  bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    node.Unsupported("update_rule", "unknown update_rule \"{}\"", rule);
  if (node.HasInput(4) != gated || node.HasInput(5) != delta)
    node.Fail("bad-operand", "update_rule \"{}\" cannot be used with{} decay and with{} beta", rule,
              node.HasInput(4) ? "" : "out", node.HasInput(5) ? "" : "out");
  int64_t queries = node.Int("q_num_heads"), heads = node.Int("kv_num_heads");
  if (heads < 1 || queries < 1 || queries % heads != 0)
    node.Fail("bad-attribute", "{} query heads are not divisible by {} key heads", queries, heads);
  for (int i : {0, 1, 2}) {
    if (node.rank(i) != 3)
      node.Fail("bad-operand", "input {} is {}, expected three dimensions", i,
                ToString(node.shape(i)));
    if (!node.shape(i)[2].is_constant())
      node.Fail("dynamic-shape", "the last dimension of input {} must be constant", i);
  }
  int64_t rows = node.shape(1)[2].constant() / heads, columns = node.shape(2)[2].constant() / heads;

  networks::LinearTokens tokens{TokensFirst(node, 0, heads, queries / heads, rows),
                                TokensFirst(node, 1, heads, rows, 1),
                                TokensFirst(node, 2, heads, 1, columns), nullptr, nullptr};
  if (gated) {
    bool whole = node.shape(4).back() == Dim(heads);  // one factor for all rows of a head
    tokens.decay = node.Make("exp", {{"x", TokensFirst(node, 4, heads, whole ? 1 : rows, 1)}});
  }
  if (delta) tokens.beta = TokensFirst(node, 5, node.shape(5).back() == Dim(1) ? 1 : heads, 1, 1);
  double scale = node.Float("scale", 0.0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(rows));
  tokens.q = Binary(node, "mul", tokens.q, scale);

  Value* state = node.Optional(3);
  if (state) state = Expanded(node, node.builder().Cast(state, DType::kFp32), {0});
  networks::LinearAttended after = mlc::networks::LinearAttention(node, tokens, state);
  DType dtype = node.dtype(), kept = node.HasInput(3) ? node.dtype(3) : dtype;
  Value* y = Reshaped(node, after.y, {{after.y, 0}, {after.y, 1}, queries * columns});
  node.Set(0, node.builder().Cast(Transposed(node, y, {1, 0, 2}), lower::RuntimeType(dtype)),
           dtype);
  Value* present = Squeezed(node, after.state, {0});
  node.Set(1, node.builder().Cast(present, lower::RuntimeType(kept)), kept);
}

constexpr NodeRow kLinearAttentionRows[] = {{"LinearAttention", LinearAttention, 27}};

}  // namespace

std::span<const NodeRow> LinearAttentionRows() { return kLinearAttentionRows; }

}  // namespace mlc::onnx
