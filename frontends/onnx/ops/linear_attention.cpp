// LinearAttention: a state of K rows and V columns for each head, which each token decays, corrects
// and adds to, and which queries read. Step by step: unrolled where the number of tokens is known
// and small, else a while_loop. Letters of shapes: T tokens, B batch, N heads of keys, G queries of
// one such head.
#include <cmath>

#include "frontends/onnx/counted_loop.h"
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/sizes.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kUnrolledTokens = 64;

struct Tokens {
  Value* q;      // [T, B, N, G, K]
  Value* k;      // [T, B, N, K, 1]
  Value* v;      // [T, B, N, 1, V]
  Value* decay;  // [T, B, N, K or 1, 1], a factor; null: 1
  Value* beta;   // [T, B, N or 1, 1, 1]; null: no correction
};
constexpr Value* Tokens::*kParts[] = {&Tokens::q, &Tokens::k, &Tokens::v, &Tokens::decay,
                                      &Tokens::beta};

// [B, T, width] -> [T, B, heads, rows, columns], computed in fp32.
Value* TokensFirst(Node& node, int input, int64_t heads, int64_t rows, int64_t columns) {
  Value* x = node.builder().Cast(node.In(input), DType::kFp32);
  const Shape& shape = node.shape(input);
  if (shape.size() != 3 || shape[2] != Dim(heads * rows * columns))
    node.Fail("bad-operand", fmt::format("input {} is {}, expected {} elements of each token",
                                         input, ToString(shape), heads * rows * columns));
  x = Transposed(node, x, {1, 0, 2});
  return Reshaped(node, x, {{x, 0}, {x, 1}, heads, rows, columns});
}

struct After {
  Value *state, *y;
};
// One token's part: all dimensions as above with T = 1.
After Step(Builder& b, const Tokens& token, Value* state) {
  if (token.decay) state = Binary(b, "mul", state, token.decay);
  Value* written = token.v;
  if (token.beta) {
    Value* known = b.Make("matmul", {{"x", token.k}, {"y", state}, {"transpose_x", true}});
    written = Binary(b, "mul", token.beta, Binary(b, "sub", token.v, known));
  }
  state = Binary(b, "add", state, Binary(b, "mul", token.k, written));
  return {state, Binary(b, "matmul", token.q, state)};
}

After Unrolled(Node& node, const Tokens& tokens, Value* state, int64_t count) {
  std::vector<Tokens> each(count, Tokens{});
  for (auto part : kParts) {
    if (!(tokens.*part)) continue;
    std::vector<Value*> parts = {tokens.*part};
    if (count > 1) parts = Parts(node, tokens.*part, std::vector<int64_t>(count, 1), 0);
    for (int64_t t = 0; t < count; ++t) each[t].*part = parts[t];
  }
  std::vector<Value*> y;
  for (const Tokens& token : each) {
    After after = Step(node.builder(), token, state);
    state = after.state;
    y.push_back(after.y);
  }
  return {state, count > 1 ? Concat(node, y, 0) : y[0]};
}

After Looped(Node& node, const Tokens& tokens, Value* state) {
  Builder& b = node.builder();
  Sizes count(node), all(node);
  count.AddDim(tokens.q, 0);
  Value* steps = AtRunTime(node, count.Make(), DType::kInt64);
  for (int axis : {0, 1, 2, 3}) all.AddDim(tokens.q, axis);
  all.AddDim(tokens.v, 4);
  Value* y = b.Make("fill", {{"shape", all.Make()}, {"value", Tensor::Scalar<float>(0)}});
  auto step = [&](Builder& in, Value* t, const std::vector<Value*>& vars) {
    Tokens token{};
    for (auto part : kParts)
      if (Value* x = tokens.*part)
        token.*part = in.Make("gather", {{"x", x}, {"indices", t}, {"axis", 0}});
    After after = Step(in, token, vars[0]);
    Value* written = in.Make(
        "scatter",
        {{"data", vars[1]}, {"indices", t}, {"updates", after.y}, {"axis", 0}, {"mode", "update"}});
    return std::vector<Value*>{after.state, written};
  };
  std::vector<Value*> results = CountedLoop(b, steps, {state, y}, step);
  return {results[0], results[1]};
}

// query [B, T, N * G * K], key [B, T, N * K], value [B, T, N * V], past_state [B, N, K, V], decay
// [B, T, N * K or N], the logarithm of a factor, beta [B, T, N or 1]
void LinearAttention(Node& node) {
  node.Ignore({"chunk_size"});
  std::string rule = node.String("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta";
  bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    node.Unsupported("update_rule", fmt::format("update_rule \"{}\"", rule));
  if (node.HasInput(4) != gated || node.HasInput(5) != delta)
    node.Fail("bad-operand",
              fmt::format("update_rule \"{}\" with{} decay and with{} beta", rule,
                          node.HasInput(4) ? "" : "out", node.HasInput(5) ? "" : "out"));
  int64_t queries = node.Int("q_num_heads"), heads = node.Int("kv_num_heads");
  if (heads < 1 || queries < 1 || queries % heads != 0)
    node.Fail("bad-attribute", fmt::format("{} heads of {} keys", queries, heads));
  for (int i : {0, 1, 2}) {
    if (node.rank(i) != 3)
      node.Fail("bad-operand", fmt::format("input {} is {}", i, ToString(node.shape(i))));
    if (!node.shape(i)[2].is_constant())
      node.Fail("dynamic-shape", fmt::format("the width of input {} is not known", i));
  }
  int64_t rows = node.shape(1)[2].constant() / heads, columns = node.shape(2)[2].constant() / heads;

  Tokens tokens{TokensFirst(node, 0, heads, queries / heads, rows),
                TokensFirst(node, 1, heads, rows, 1), TokensFirst(node, 2, heads, 1, columns),
                nullptr, nullptr};
  if (gated) {
    bool whole = node.shape(4).back() == Dim(heads);  // one factor for all rows
    tokens.decay = node.Make("exp", {{"x", TokensFirst(node, 4, heads, whole ? 1 : rows, 1)}});
  }
  if (delta) tokens.beta = TokensFirst(node, 5, node.shape(5).back() == Dim(1) ? 1 : heads, 1, 1);
  double scale = node.Float("scale", 0.0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(rows));
  tokens.q = node.Make("mul", {{"x", tokens.q}, {"y", scale}});

  Value* state = nullptr;
  if (Value* past = node.Optional(3)) {
    state = Expanded(node, node.builder().Cast(past, DType::kFp32), {0});
  } else {
    Sizes sizes(node);
    sizes.Add(1);
    sizes.AddDim(tokens.q, 1);
    sizes.Add({heads, rows, columns});
    state = node.Make("fill", {{"shape", sizes.Make()}, {"value", Tensor::Scalar<float>(0)}});
  }
  const Dim& length = node.shape()[1];
  bool few = length.is_constant() && length.constant() >= 1 && length.constant() <= kUnrolledTokens;
  After after =
      few ? Unrolled(node, tokens, state, length.constant()) : Looped(node, tokens, state);
  DType dtype = node.dtype(), kept = node.HasInput(3) ? node.dtype(3) : dtype;
  Value* y = Reshaped(node, after.y, {{after.y, 0}, {after.y, 1}, queries * columns});
  node.Set(0, node.builder().Cast(Transposed(node, y, {1, 0, 2}), RuntimeType(dtype)), dtype);
  Value* present = node.Make("squeeze", {{"x", after.state}, {"axes", Ints({0})}});
  node.Set(1, node.builder().Cast(present, RuntimeType(kept)), kept);
}

constexpr NodeRow kRows[] = {{"LinearAttention", LinearAttention, 27}};

}  // namespace

std::span<const NodeRow> LinearAttentionRows() { return kRows; }

}  // namespace mlc::onnx
