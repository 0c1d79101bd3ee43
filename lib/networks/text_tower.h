// lib/networks/text_tower.h - towers that turn texts into one vector (CLIP, SigLIP).
#pragma once

#include <cstdint>

#include "lib/networks/layers.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

struct TextConfig {
  TransformerLayer layer;
  int64_t layers = 0, vocabulary = 0;
  int64_t positions = 0;  // the maximum number of tokens
  bool causal = false;    // a token sees those up to it
  bool head = false;      // the pooled token goes through a linear layer (SigLIP)
  enum class Pooled : uint8_t {
    kLast,     // the last token
    kFirstOf,  // the first `end_token`, or the first token if there is none
    kLargest,  // the first of the largest id
  } pooled = Pooled::kLast;
  int64_t end_token = 0;
};

// The tensors of a tower have these names:
//
//   text.tokens.weight text.positions.weight text.layer.N.* (transformer_layer.h) text.norm text.head
//
// Throws Error "bad-file", "resource-limit". Must precede TextTower.
void CheckText(const TextConfig& config);

struct TextStates {
  Value* hidden;  // [1, S, W], normalised
  Value* pooled;  // [1, W]
};
// `ids` is int32 [1, S].
TextStates TextTower(Builder& b, Layers& layers, const TextConfig& config, Value* ids);

}  // namespace mlc::networks
