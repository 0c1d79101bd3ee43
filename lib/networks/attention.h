// lib/networks/attention.h - scaled dot-product attention. Letters of shapes: B batch, S queries, T
// keys including the past, N heads, H head dimension of queries and keys, V of values.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::networks {

struct AttentionParts {
  Value *q, *k, *v;  // [B, N, S, H], [B, N, T, H], [B, N, T, V] with repeated heads (heads.h)
  // Factor of the scores; 1 if q is already scaled, which avoids overflow in fp16.
  double scale = 1;
  double softcap = 0;          // upper bound for the magnitude of scores; 0: none
  std::vector<Value*> biases;  // added to the scores, in order (masks.h)
  // bool values that broadcast to the scores [B, N, S, T].
  std::vector<Value*> seen;  // a key is hidden unless all are true
  // Like `seen`, but applied after the softmax: the weight of a key is 0 unless all are true. Needed
  // if a query may see no key, whose result must then be 0.
  std::vector<Value*> kept;
  Value* sink = nullptr;         // an additional score in every row [B or 1, N or 1, S or 1, 1]
  DType softmax = DType::kNone;  // the type of the softmax computation; kNone: the scores' type
  bool wants_masked = false;     // whether to compute `masked` of the result
  // Adjusts scores after a bias or `seen` might have enlarged them, given the scores before; null:
  // no adjustment.
  std::function<Value*(Value* changed, Value* before)> fits = {};
};

// The results; all are [B, N, S, T] except y, [B, N, S, V].
struct Attended {
  Value* y;
  Value *products, *capped;  // scores before and after the cap
  Value* scores;             // with all biases; the lowest finite number for hidden keys
  Value* masked;             // the same with -inf for hidden keys; null unless requested
  Value* shares;
};
// Computes y = softmax(cap(q k' scale) + biases) v.
Attended Attend(Builder& b, const AttentionParts& parts);

}  // namespace mlc::networks
