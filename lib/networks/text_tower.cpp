#include "lib/networks/text_tower.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/masks.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

// Returns the index [1] of the pooled token.
Value* PooledPlace(Builder& b, const TextConfig& config, Value* ids) {
  if (config.pooled == TextConfig::Pooled::kFirstOf)
    ids = b.Cast(Binary(b, "equal", ids, config.end_token), DType::kInt32);
  return b.Make("reduce_argmax", {{"x", ids}, {"axis", 1}, {"keep_dims", false}});
}

}  // namespace

void CheckText(const TextConfig& config) {
  CheckLayer(config.layer);
  constexpr int64_t kMaxLayers = 1 << 10, kMaxTokens = 1 << 17;
  if (config.layers < 1 || config.layers > kMaxLayers)
    throw Error("bad-file", "the model for texts has {} layers", config.layers)
        .Expected("1 to {}", kMaxLayers);
  if (config.vocabulary < 1 || config.vocabulary > INT32_MAX)
    throw Error("bad-file", "the model has {} tokens in the vocabulary", config.vocabulary);
  if (config.positions < 1 || config.positions > kMaxTokens)
    throw Error("resource-limit", "the model accepts {} tokens", config.positions)
        .Expected("1 to {}", kMaxTokens);
}

TextStates TextTower(Builder& b, Layers& layers, const TextConfig& config, Value* ids) {
  const int64_t width = config.layer.width;
  b.SetName("text_embeddings");
  Value* x = Rows(b, layers.Needed("text.tokens.weight", {config.vocabulary, width}), ids);
  Value* positions = layers.Needed("text.positions.weight", {config.positions, width});
  x = Binary(b, "add", x, Rows(b, positions, IndicesOf(b, ids, 1)));
  AttentionContext context;
  if (config.causal) {
    Value* at = IndicesOf(b, ids, 1);
    context.seen = {
        Binary(b, "less_equal", Expanded(b, at, {0, 1, 2}), Expanded(b, at, {0, 1, 3}))};
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    b.SetName(fmt::format("text_layer_{}", layer));
    x = PreNormLayer(b, layers, config.layer, fmt::format("text.layer.{}.", layer), x, context);
  }
  b.SetName("text_pooled");
  x = layers.LayerNorm("text.norm", x, config.layer.epsilon);
  Value* pooled = nullptr;
  if (config.pooled == TextConfig::Pooled::kLast) {
    pooled = SliceBetween(b, x, {0, -1, 0}, {1, 0, width}, {true, true, true});
    pooled = WithShape(b, pooled, {1, width});
  } else {
    pooled = Rows(b, Squeezed(b, x, {0}), PooledPlace(b, config, ids));
  }
  if (config.head) pooled = Biased(layers, "text.head", pooled, -1);
  return {x, pooled};
}

}  // namespace mlc::networks
