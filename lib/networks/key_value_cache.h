// lib/networks/key_value_cache.h - keys and values of past tokens in a state of the model.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

// Writes `fresh` [1, heads, S, head dimension] into a layer of a state [layers, 1, heads, context,
// head dimension], at the positions `past` (int32 [1]) to T, the last dimension of `mask` [1, 1, S, T],
// and returns what the layer has of all tokens so far: [heads, 1, T, head dimension].
Value* WithPast(Builder& b, Value* state, int64_t layer, Value* past, Value* mask, Value* fresh);

}  // namespace mlc::networks
