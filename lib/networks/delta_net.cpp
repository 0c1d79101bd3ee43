#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/activation.h"
#include "lib/networks/linear_attention.h"
#include "lib/networks/norms.h"
#include "lib/networks/token_mixer.h"

namespace mlc::networks {

namespace {

// Scales rows to the length `length`, with epsilon added to the squared length. This is an RMS norm
// with other constants.
Value* OfLength(Builder& b, Value* x, double length, double epsilon) {
  const double size = static_cast<double>(x->type.shape.back().constant());
  Value* y = RmsNorm(b, x, {-1}, nullptr, nullptr, epsilon / size).y;
  return Binary(b, "mul", y, length / std::sqrt(size));
}

}  // namespace

// state = alpha state + k (beta (v - k' alpha state)), y = q state (Yang et al. 2024, sections 3.1
// and 3.4), alpha = exp(A softplus(. + bias)) with negative A. In GGUF's order, value head i uses
// key head i modulo the number of key heads (llama.cpp, conversion/qwen.py).
Value* DeltaNet(const TokenMixerContext& context, Value* x) {
  Builder& b = context.b;
  const TokenMixerSizes& sizes = context.config.recurrent;
  const int64_t rows = sizes.state, keys = sizes.groups, heads = sizes.heads, shared = heads / keys,
                columns = sizes.inner / heads;
  std::vector<int64_t> each = {rows * keys, rows * keys, sizes.inner};
  Value* all = context.Projected(Role::kQkv, x, each[0] + each[1] + each[2]);
  std::vector<Value*> qkv =
      Parts(b, Activate(b, Activation::kSilu, Convolved(context, all, false)), each, 2);
  auto of_keys = [&](Value* part, double length) {
    Value* y = Reshaped(b, part, {{x, 1}, 1, keys, 1, rows});
    return OfLength(b, y, length, context.config.epsilon);
  };
  auto of_values = [&](Value* part, int64_t size) {
    return Reshaped(b, part, {{x, 1}, shared, keys, 1, size});
  };
  Value* bias = context.tensors.Bias(Role::kTimeStep, context.layer, {heads}, true);
  Value* step = Binary(b, "add", context.Projected(Role::kAlpha, x, heads), bias);
  step = b.Make("softplus", {{"x", step}});
  Value* alpha =
      b.Make("exp", {{"x", Binary(b, "mul", step, context.Weight(Role::kDecay, {heads}))}});
  Value* beta = b.Make("sigmoid", {{"x", context.Projected(Role::kBeta, x, heads)}});
  LinearTokens tokens{.q = of_keys(qkv[0], 1 / std::sqrt(static_cast<double>(rows))),
                      .k = Transposed(b, of_keys(qkv[1], 1), {0, 1, 2, 4, 3}),
                      .v = of_values(qkv[2], columns),
                      .decay = of_values(alpha, 1),
                      .beta = of_values(beta, 1)};
  LinearAttended after = LinearAttention(b, tokens, context.recurrent.Read(b));
  context.recurrent.Write(b, after.state);
  Value* y = RmsNorm(b, after.y, {-1}, context.Weight(Role::kMixerNorm, {columns}), nullptr,
                     context.config.epsilon)
                 .y;
  y = Reshaped(b, y, {1, {x, 1}, sizes.inner});
  Value* gate = Activate(b, Activation::kSilu, context.Projected(Role::kMixerGate, x, sizes.inner));
  return context.Projected(Role::kMixerOutput, Binary(b, "mul", y, gate), context.config.width);
}

}  // namespace mlc::networks
