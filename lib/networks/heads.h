// lib/networks/heads.h - splits, joins and repeats attention heads. Letters of shapes: B batch, S
// queries, T keys, N heads, H head dimension.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

// [B, S, N * H] -> [B, N, S, H]. Error "bad-operand" if the width is not a multiple of the heads,
// "dynamic-shape" if it is unknown.
Value* Heads(Builder& b, Value* x, int64_t heads);
// [B, N, S, H] -> [B, S, N * H]; N and H must be known.
Value* Joined(Builder& b, Value* x);
// Repeats every head of [B, N, T, H] `times` times, for keys that groups of queries share. N must
// be known.
Value* Repeated(Builder& b, Value* x, int64_t times);

}  // namespace mlc::networks
