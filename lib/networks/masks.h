// lib/networks/masks.h - masks, which determine the keys that a query sees. Letters of shapes: B
// batch, S queries, T keys, N heads. Queries are [B, N, S, .] and keys [B, N, T, .], including the
// past; positions are int32.
//
// A bias is added to the scores [B, N, S, T]: 0 for keys that the query sees, `fill` for others.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

// Returns the lowest finite number of a float type: a score whose softmax is 0.
double Lowest(DType dtype);
// Returns the positions [S] of the queries, T - S to T - 1: they are the last S of the T keys.
Value* Positions(Builder& b, Value* queries, Value* keys);
// Returns the keys that a query sees from `left` before to `right` after its position; -1: no
// limit. The position is the query's row plus `offset` (null, a scalar, or one per batch element
// [B, 1, 1, 1]). bool [S, T] or [B, 1, S, T]; null: every key.
Value* InReach(Builder& b, Value* queries, Value* keys, Value* offset, int64_t left, int64_t right);

// Returns `fill` where `places` (bool) is true, and 0 elsewhere, in this type.
Value* Filled(Builder& b, Value* places, double fill, DType dtype);
// Returns the bias of a mask, which is bool, or integers that are positive for keys to be seen.
Value* BiasOf(Builder& b, Value* seen, double fill, DType dtype);
// Returns whether a query must not see the key at position `columns` [T], because the key comes
// later or is not among the last `window` keys up to the query (no limit unless positive). `rows`,
// the positions of queries, are [S, 1] or broadcast likewise.
Value* Hidden(Builder& b, Value* rows, Value* columns, int64_t window);
// Returns the bias for Hidden: [S, T], or [B, 1, S, T] if the positions of queries are [B, S].
Value* CausalBias(Builder& b, Value* positions, Value* keys, int64_t window, double fill,
                  DType dtype);

// Returns cap * tanh(scores / cap).
Value* SoftCapped(Builder& b, Value* scores, double cap);
// Returns the softmax over the keys. A sink [B or 1, N or 1, S or 1, 1] is an additional score in
// every row, whose result is dropped; null: none.
Value* Shares(Builder& b, Value* scores, Value* sink);

}  // namespace mlc::networks
