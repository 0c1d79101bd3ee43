// lib/networks/attention.h - attention by scaled dot products. Letters of shapes: B batch, S
// queries, T keys (the past included), N heads, H head dimension of queries and keys, V of values.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

struct AttentionParts {
  Value *q, *k, *v;            // [B, N, S, H], [B, N, T, H], [B, N, T, V], heads repeated (heads.h)
  double scale = 1;            // of the scores; 1 where q has it already, which fp16 likes better
  double softcap = 0;          // no magnitude of a score is above it; 0: none
  std::vector<Value*> biases;  // added to the scores, in order (masks.h)
  // bool values that broadcast to the scores [B, N, S, T].
  std::vector<Value*> seen;  // a key that is not seen by all of them is hidden
  std::vector<Value*> kept;  // what is not kept by all of them gets no share: for queries that may
                             // see no key, whose result is 0
  Value* sink = nullptr;     // one more score in every row [B or 1, N or 1, S or 1, 1]
  DType softmax = DType::kNone;  // computed in this type; kNone: that of the scores
  bool wants_masked = false;     // `masked` of the result
  // Looks at scores that a bias or `seen` changed, given those before, where it might have enlarged
  // them; null: they do not.
  std::function<Value*(Value* changed, Value* before)> fits = {};
};

// All [B, N, S, T] but y, [B, N, S, V].
struct Attended {
  Value* y;
  Value *products, *capped;  // scores before the cap, and behind it
  Value* scores;             // with all biases, and the lowest number for hidden keys
  Value* masked;             // the same with -inf for hidden keys; null unless wanted
  Value* shares;
};
// y = softmax(cap(q k' scale) + biases) v
Attended Attend(Builder& b, const AttentionParts& parts);

}  // namespace mlc
