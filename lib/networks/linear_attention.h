// lib/networks/linear_attention.h - linear attention: each token decays, corrects and updates a
// state, which queries read. Letters of shapes: T tokens, B batch, N heads, G queries per head, K
// rows and V columns of a head's state.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

// All tensors have the same float type; T is the first dimension. Each token multiplies the state
// by `decay` and adds k (beta (v - k' state)), or k v without a correction; y is q times the new
// state. A dimension of 1 in place of B or N is shared.
struct LinearTokens {
  Value* q;               // [T, B, N, G, K]
  Value* k;               // [T, B, N, K, 1]
  Value* v;               // [T, B, N, 1, V], without shared dimensions
  Value* decay;           // [T, B, N, K or 1, V or 1], a factor; null: 1
  Value* beta;            // [T, B, N, 1, 1]; null: no correction
  Value* rate = nullptr;  // [K, V]: the factor is exp(decay * rate), computed per token
};

struct LinearAttended {
  Value* state;  // [1, B, N, K, V]
  Value* y;      // [T, B, N, G, V]
};
// Starts from `state` [1, B, N, K, V]; null: zeros. Unrolled if there are at most 64 tokens and
// their number is known, otherwise a while_loop.
LinearAttended LinearAttention(Builder& b, const LinearTokens& tokens, Value* state);

}  // namespace mlc::networks
