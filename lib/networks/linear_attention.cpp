#include "lib/networks/linear_attention.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/counted_loop.h"

namespace mlc::networks {

namespace {

constexpr int64_t kUnrolledTokens = 64;
constexpr Value* LinearTokens::*kParts[] = {&LinearTokens::q, &LinearTokens::k, &LinearTokens::v,
                                            &LinearTokens::decay, &LinearTokens::beta};

// Computes one token: all dimensions as in the header with T = 1.
LinearAttended Step(Builder& b, const LinearTokens& token, Value* state) {
  Value* decay = token.decay;
  if (token.rate) decay = b.Make("exp", {{"x", Binary(b, "mul", decay, token.rate)}});
  if (decay) state = Binary(b, "mul", state, decay);
  Value* written = token.v;
  if (token.beta) {
    Value* known = b.Make("matmul", {{"x", token.k}, {"y", state}, {"transpose_x", true}});
    written = Binary(b, "mul", token.beta, Binary(b, "sub", token.v, known));
  }
  state = Binary(b, "add", state, Binary(b, "mul", token.k, written));
  return {state, Binary(b, "matmul", token.q, state)};
}

LinearAttended Unrolled(Builder& b, const LinearTokens& tokens, Value* state, int64_t count) {
  std::vector<LinearTokens> each(count, LinearTokens{.rate = tokens.rate});
  for (auto part : kParts) {
    if (!(tokens.*part)) continue;
    std::vector<Value*> parts = {tokens.*part};
    if (count > 1) parts = Parts(b, tokens.*part, std::vector<int64_t>(count, 1), 0);
    for (int64_t t = 0; t < count; ++t) each[t].*part = parts[t];
  }
  std::vector<Value*> y;
  for (const LinearTokens& token : each) {
    LinearAttended after = Step(b, token, state);
    state = after.state;
    y.push_back(after.y);
  }
  return {state, count > 1 ? Concat(b, y, 0) : y[0]};
}

LinearAttended Looped(Builder& b, const LinearTokens& tokens, Value* state) {
  auto step = [&](Builder& in, Value* t, const std::vector<Value*>& states) {
    LinearTokens token{.rate = tokens.rate};
    for (auto part : kParts)
      if (Value* x = tokens.*part)
        token.*part = in.Make("gather", {{"x", x}, {"indices", t}, {"axis", 0}});
    LinearAttended after = Step(in, token, states[0]);
    return Swept{{after.state}, after.y};
  };
  std::vector<Size> element = {{tokens.v, 1}, {tokens.v, 2}, {tokens.q, 3}, {tokens.v, 4}};
  Swept all = Sweep(b, tokens.q, {state}, element, tokens.q->type.dtype, false, step);
  return {all.states[0], all.y};
}

}  // namespace

LinearAttended LinearAttention(Builder& b, const LinearTokens& tokens, Value* state) {
  if (!state) {
    Sizes sizes(b);
    sizes.Add(1);
    sizes.AddDim(tokens.v, 1);
    sizes.AddDim(tokens.v, 2);
    sizes.AddDim(tokens.k, 3);
    sizes.AddDim(tokens.v, 4);
    Tensor zero = Tensor::Full(tokens.q->type.dtype, {}, 0);
    state = b.Make("fill", {{"shape", sizes.Make()}, {"value", zero}});
  }
  const Dim& length = tokens.q->type.shape[0];
  bool few = length.is_constant() && length.constant() >= 1 && length.constant() <= kUnrolledTokens;
  return few ? Unrolled(b, tokens, state, length.constant()) : Looped(b, tokens, state);
}

}  // namespace mlc::networks
