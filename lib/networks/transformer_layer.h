// lib/networks/transformer_layer.h - a layer of an encoder with norms of the inputs of its branches,
// as in towers of pictures and of their texts:
//
//   x += scale1 * attention(norm1(x)); x += scale2 * feed_forward(norm2(x))
#pragma once

#include <string>
#include <vector>

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"

namespace mlc::networks {

struct TransformerLayer {
  int64_t width = 0, heads = 0, feed_forward = 0;
  Activation activation = Activation::kGelu;
  double epsilon = 1e-6;   // of the norms
  bool rms_norms = false;  // the norms do not subtract the mean
  bool gated = false;      // feed-forward networks have gate and up projections
  // Biases that the projections must have.
  bool query_bias = true, key_bias = true, value_bias = true, output_bias = true, up_bias = true;
};

// The inputs of attention besides the tokens; null or empty: none. S tokens, N heads, H head
// dimension.
struct AttentionContext {
  std::vector<Value*> biases;  // added to the scores [1, N, S, S]
  std::vector<Value*> seen;    // AttentionParts::seen
  // Angles [1, R, H / 2] of rotary embedding in halves, for R tokens from `first_rotated` on; the
  // tokens around them have no positions.
  Value *cosine = nullptr, *sine = nullptr;
  int64_t first_rotated = 0;
  bool interleaved = false;  // pairs of neighbours are rotated, not halves
};

// The tensors of a layer have these names after `own` ("vision.layer.3."):
//
//   attention_norm query key value, or qkv, their rows in this order; attention norm
//   up, with gate if gated, or gate_up, the gate's rows first; down
//   joined_norm inner_norm   before the last projection of attention and of feed-forward networks,
//                            if there are any
//   attention_scale scale   [width], if there are any
//
// Each but the last two is followed by .weight or .bias. x is [1, S, width].
Value* PreNormLayer(Builder& b, Layers& layers, const TransformerLayer& config,
                    const std::string& own, Value* x, const AttentionContext& context = {});
// The two branches of one layer.
Value* SelfAttention(Builder& b, Layers& layers, const TransformerLayer& config,
                     const std::string& own, Value* x, const AttentionContext& context = {});
Value* FeedForwardOf(Builder& b, Layers& layers, const TransformerLayer& config,
                     const std::string& own, Value* x);

struct Projections {
  Value *query, *key, *value;  // [..., width]
};
// Projects tokens by own + "query", "key" and "value", or by "qkv", with which "query.bias" and
// "value.bias" may be apart (BEiT). The biases that `config` asks for must be there.
Projections Projected(Builder& b, Layers& layers, const TransformerLayer& config,
                      const std::string& own, Value* x);

// The norm `name` of x, of the kind that `config` says.
Value* Normed(Layers& layers, const TransformerLayer& config, const std::string& name, Value* x);
// Layers::Linear with a bias that must be there. `out` -1: any number of rows.
Value* Biased(Layers& layers, const std::string& name, Value* x, int64_t out);

// Throws Error "bad-file" unless the sizes are positive and heads divide the width.
void CheckLayer(const TransformerLayer& config);

}  // namespace mlc::networks
