#include "lib/networks/transformer_layer.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/concat_slice.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/rotary.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

Value* LinearWith(Layers& layers, const std::string& name, Value* x, int64_t out, bool bias) {
  return bias ? Biased(layers, name, x, out) : layers.Linear(name, x, out);
}

// Rotates the tokens that have positions, of queries or keys [1, N, S, H].
Value* WithPositions(Builder& b, Value* x, const AttentionContext& context) {
  if (!context.cosine) return x;
  const int64_t tokens = x->type.shape[2].constant(), before = context.first_rotated,
                rotated = context.cosine->type.shape[1].constant(),
                after = tokens - before - rotated;
  std::vector<int64_t> sizes;
  for (int64_t size : {before, rotated, after})
    if (size > 0) sizes.push_back(size);
  if (sizes.size() == 1) return Rotated(b, x, context.cosine, context.sine, context.interleaved);
  std::vector<Value*> parts = Parts(b, x, sizes, 2);
  Value*& middle = parts[before > 0 ? 1 : 0];
  middle = Rotated(b, middle, context.cosine, context.sine, context.interleaved);
  return Concat(b, parts, 2);
}

Value* Scaled(Builder& b, Layers& layers, const std::string& name, Value* x, int64_t width) {
  Value* scale = layers.Optional(name, {width});
  return scale ? Binary(b, "mul", x, scale) : x;
}

Value* NormedIf(Layers& layers, const std::string& name, Value* x, double epsilon) {
  return layers.Has(name + ".weight") ? layers.LayerNorm(name, x, epsilon) : x;
}

}  // namespace

Value* Normed(Layers& layers, const TransformerLayer& config, const std::string& name, Value* x) {
  return config.rms_norms ? layers.RmsNorm(name, x, config.epsilon)
                          : layers.LayerNorm(name, x, config.epsilon);
}

Value* Biased(Layers& layers, const std::string& name, Value* x, int64_t out) {
  Value* weight = layers.Needed(name + ".weight", {out, x->type.shape.back().constant()});
  layers.Needed(name + ".bias", {weight->type.shape[0].constant()});
  return layers.Linear(name, x, out);
}

Projections Projected(Builder& b, Layers& layers, const TransformerLayer& config,
                      const std::string& own, Value* x) {
  const int64_t width = config.width;
  if (!layers.Has(own + "qkv.weight"))
    return {LinearWith(layers, own + "query", x, width, config.query_bias),
            LinearWith(layers, own + "key", x, width, config.key_bias),
            LinearWith(layers, own + "value", x, width, config.value_bias)};
  Value* all = nullptr;
  if (layers.Has(own + "query.bias")) {
    const Tensor query = layers.Needed(own + "query.bias", {width})->constant(),
                 value = layers.Needed(own + "value.bias", {width})->constant();
    const Tensor bias = Join({query, Tensor::Full(DType::kFp32, {width}, 0), value}, 0);
    all = b.Make("linear", {{"x", x},
                            {"weight", layers.Needed(own + "qkv.weight", {3 * width, width})},
                            {"bias", b.Const(bias.ComputedFrom(query), "qkv_bias")}});
  } else {
    all = LinearWith(layers, own + "qkv", x, 3 * width, config.query_bias);
  }
  const std::vector<Value*> parts = Parts(b, all, {width, width, width}, 2);
  return {parts[0], parts[1], parts[2]};
}

Value* SelfAttention(Builder& b, Layers& layers, const TransformerLayer& config,
                     const std::string& own, Value* x, const AttentionContext& context) {
  const int64_t width = config.width;
  const Projections made = Projected(b, layers, config, own, x);
  Value* q = WithPositions(b, Heads(b, made.query, config.heads), context);
  Value* k = WithPositions(b, Heads(b, made.key, config.heads), context);
  const double scale = 1 / std::sqrt(static_cast<double>(width / config.heads));
  AttentionParts parts{.q = Binary(b, "mul", q, scale),
                       .k = k,
                       .v = Heads(b, made.value, config.heads),
                       .biases = context.biases,
                       .seen = context.seen};
  Value* y = NormedIf(layers, own + "joined_norm", Joined(b, Attend(b, parts).y), config.epsilon);
  return LinearWith(layers, own + "attention", y, width, config.output_bias);
}

Value* FeedForwardOf(Builder& b, Layers& layers, const TransformerLayer& config,
                     const std::string& own, Value* x) {
  const int64_t size = config.feed_forward;
  Value *gate = nullptr, *up = nullptr;
  if (config.gated && layers.Has(own + "gate_up.weight")) {
    std::vector<Value*> both =
        Parts(b, LinearWith(layers, own + "gate_up", x, 2 * size, config.up_bias), {size, size}, 2);
    gate = both[0], up = both[1];
  } else if (config.gated) {
    gate = LinearWith(layers, own + "gate", x, size, config.up_bias);
    up = LinearWith(layers, own + "up", x, size, config.up_bias);
  } else {
    gate = LinearWith(layers, own + "up", x, size, config.up_bias);
  }
  Value* y = Activate(b, config.activation, gate);
  if (up) y = Binary(b, "mul", y, up);
  y = NormedIf(layers, own + "inner_norm", y, config.epsilon);
  return LinearWith(layers, own + "down", y, config.width, config.up_bias);
}

Value* PreNormLayer(Builder& b, Layers& layers, const TransformerLayer& config,
                    const std::string& own, Value* x, const AttentionContext& context) {
  Value* y = SelfAttention(b, layers, config, own,
                           Normed(layers, config, own + "attention_norm", x), context);
  x = Binary(b, "add", x, Scaled(b, layers, own + "attention_scale", y, config.width));
  y = FeedForwardOf(b, layers, config, own, Normed(layers, config, own + "norm", x));
  return Binary(b, "add", x, Scaled(b, layers, own + "scale", y, config.width));
}

void CheckLayer(const TransformerLayer& config) {
  for (auto [name, number] : {std::pair{"dimensions per token", config.width},
                              {"attention heads", config.heads},
                              {"dimensions of a feed-forward layer", config.feed_forward}})
    if (number < 1 || number > INT32_MAX / 8)
      throw Error("bad-file", "the model has {} {}", number, name)
          .Expected("1 to {}", INT32_MAX / 8);
  if (config.width % config.heads != 0)
    throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                config.width, config.heads);
  if (!(config.epsilon >= 0) || !std::isfinite(config.epsilon))
    throw Error("bad-file", "the epsilon of norms is {}", config.epsilon);
}

}  // namespace mlc::networks
