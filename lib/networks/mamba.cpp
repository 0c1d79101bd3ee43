#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/activation.h"
#include "lib/networks/linear_attention.h"
#include "lib/networks/norms.h"
#include "lib/networks/token_mixer.h"

namespace mlc::networks {

namespace {

// Runs the recurrence and writes its state.
Value* Scan(const TokenMixerContext& context, const LinearTokens& tokens) {
  LinearAttended after = LinearAttention(context.b, tokens, context.recurrent.Read(context.b));
  context.recurrent.Write(context.b, after.state);
  return after.y;
}

}  // namespace

// h = exp(step A) h + step B x, y = C h + D x (Gu and Dao 2023, sections 2 and 3.2 to 3.4; B is
// discretised with Euler's method). A is stored as a negative number, not as a logarithm. With one
// head whose columns are the channels, C h is one product of linear attention.
Value* Mamba(const TokenMixerContext& context, Value* x) {
  Builder& b = context.b;
  const TokenMixerSizes& sizes = context.config.recurrent;
  const int64_t inner = sizes.inner, rows = sizes.state;
  std::vector<Value*> both =
      Parts(b, context.Projected(Role::kMixerInput, x, 2 * inner), {inner, inner}, 2);
  Value *gate = Activate(b, Activation::kSilu, both[1]),
        *u = Activate(b, Activation::kSilu, Convolved(context, both[0], true));
  Value* selection = context.Projected(Role::kSelection, u, sizes.rank + 2 * rows);
  std::vector<Value*> parts = Parts(b, selection, {sizes.rank, rows, rows}, 2);
  if (sizes.normalised_selection)
    for (Value*& part : parts)
      part = RmsNorm(b, part, {-1}, nullptr, nullptr, context.config.epsilon).y;
  Value* step =
      b.Make("softplus", {{"x", context.Projected(Role::kTimeStep, parts[0], inner, true)}});
  auto tokens_first = [&](Value* of, int64_t row, int64_t column) {
    return Reshaped(b, of, {{x, 1}, 1, 1, row, column});
  };
  Value* y =
      Scan(context, {.q = tokens_first(parts[2], 1, rows),
                     .k = tokens_first(parts[1], rows, 1),
                     .v = tokens_first(Binary(b, "mul", step, u), 1, inner),
                     .decay = tokens_first(step, 1, inner),
                     .beta = nullptr,
                     .rate = Transposed(b, context.Weight(Role::kDecay, {inner, rows}), {1, 0})});
  y = Reshaped(b, y, {1, {x, 1}, inner});
  y = Binary(b, "add", y, Binary(b, "mul", u, context.Weight(Role::kSkip, {inner})));
  return context.Projected(Role::kMixerOutput, Binary(b, "mul", y, gate), context.config.width);
}

// The same recurrence, but A and the step are shared by all channels of a head, and B and C by a
// group of heads (Dao and Gu 2024, sections 2.1 and 7); the output is normalised after the gate.
Value* Mamba2(const TokenMixerContext& context, Value* x) {
  Builder& b = context.b;
  const TokenMixerSizes& sizes = context.config.recurrent;
  const int64_t inner = sizes.inner, rows = sizes.state, groups = sizes.groups, heads = sizes.heads,
                in_group = heads / groups, columns = inner / heads;
  std::vector<int64_t> each = {inner, inner + 2 * groups * rows, heads};
  Value* all = context.Projected(Role::kMixerInput, x, each[0] + each[1] + each[2]);
  std::vector<Value*> parts = Parts(b, all, each, 2);
  Value* gate = Activate(b, Activation::kSilu, parts[0]);
  Value* step = Binary(b, "add", parts[2],
                       context.tensors.Bias(Role::kTimeStep, context.layer, {heads}, true));
  step = b.Make("softplus", {{"x", step}});
  Value* mixed = Activate(b, Activation::kSilu, Convolved(context, parts[1], true));
  parts = Parts(b, mixed, {inner, groups * rows, groups * rows}, 2);
  auto of_head = [&](Role role) {
    return Reshaped(b, context.Weight(role, {heads, 1}), {groups, in_group, 1, 1});
  };
  auto tokens_first = [&](Value* of, int64_t head, int64_t row, int64_t column) {
    return Reshaped(b, of, {{x, 1}, groups, head, row, column});
  };
  step = tokens_first(step, in_group, 1, 1);
  Value* u = tokens_first(parts[0], in_group, 1, columns);
  Value* decay = b.Make("exp", {{"x", Binary(b, "mul", step, of_head(Role::kDecay))}});
  Value* y = Scan(context, {.q = tokens_first(parts[2], 1, 1, rows),
                            .k = tokens_first(parts[1], 1, rows, 1),
                            .v = Binary(b, "mul", step, u),
                            .decay = decay,
                            .beta = nullptr});
  y = Binary(b, "add", y, Binary(b, "mul", u, of_head(Role::kSkip)));
  y = Binary(b, "mul", Reshaped(b, y, {1, {x, 1}, inner}), gate);
  y = Reshaped(b, y, {1, {x, 1}, groups, inner / groups});
  y = RmsNorm(b, y, {-1}, context.Weight(Role::kMixerNorm, {groups, inner / groups}), nullptr,
              context.config.epsilon)
          .y;
  y = Reshaped(b, y, {1, {x, 1}, inner});
  return context.Projected(Role::kMixerOutput, y, context.config.width);
}

}  // namespace mlc::networks
