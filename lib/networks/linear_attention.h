// lib/networks/linear_attention.h - attention by a state that each token decays, corrects and adds to,
// and which queries read. Letters of shapes: T tokens, B batch, N heads, G queries of one such head, K
// rows and V columns of a head's state.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// All of one float type; T comes first. Of each token: state * decay, plus
// k (beta (v - k' state)), or k v without a correction; y is q times that. What heads share has 1 in
// place of B or N.
struct LinearTokens {
  Value* q;               // [T, B, N, G, K]
  Value* k;               // [T, B, N, K, 1]
  Value* v;               // [T, B, N, 1, V], of no shared dimension
  Value* decay;           // [T, B, N, K or 1, V or 1], a factor; null: 1
  Value* beta;            // [T, B, N, 1, 1]; null: no correction
  Value* rate = nullptr;  // [K, V]: the factor is exp(decay * rate), made when its token comes
};

struct LinearAttended {
  Value* state;  // [1, B, N, K, V]
  Value* y;      // [T, B, N, G, V]
};
// From `state` [1, B, N, K, V] on; null: zeros. Unrolled where at most
// 64 tokens are known, else a while_loop.
LinearAttended LinearAttention(Builder& b, const LinearTokens& tokens, Value* state);

}  // namespace mlc
