// lib/networks/masks.h - which keys a query sees. Letters of shapes: B batch, S queries, T keys, N
// heads. Queries are [B, N, S, .] and keys [B, N, T, .], the past included; positions are int32.
//
// A bias is added to the scores [B, N, S, T]: 0 where a key is seen, `fill` where it is not.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// The lowest finite number of a float type: a score that gets no share.
double Lowest(DType dtype);
// The positions [S] of queries: they are the last of T.
Value* Positions(Builder& b, Value* queries, Value* keys);
// The keys that a query sees by its position, which is its row plus `offset` (null, a scalar, or
// one for each of the batch [B, 1, 1, 1]): `left` before it to `right` behind it; -1: all of them.
// bool [S, T] or [B, 1, S, T]; null: every key.
Value* InReach(Builder& b, Value* queries, Value* keys, Value* offset, int64_t left, int64_t right);

// `fill` where `places` (bool) are true, else 0, in this type.
Value* Filled(Builder& b, Value* places, double fill, DType dtype);
// The bias of a mask: bool, or integers that are positive where a key is seen.
Value* BiasOf(Builder& b, Value* seen, double fill, DType dtype);
// Whether a query must not see a key that stands at `columns` [T], since that comes later, or is none
// of the last `window` (unless that is not positive) up to it. The positions of queries, `rows`, are
// [S, 1] or broadcast likewise.
Value* Hidden(Builder& b, Value* rows, Value* columns, int64_t window);
// [S, T], or [B, 1, S, T] where the positions of queries are [B, S]: hides what is Hidden.
Value* CausalBias(Builder& b, Value* positions, Value* keys, int64_t window, double fill,
                  DType dtype);

// cap * tanh(scores / cap)
Value* SoftCapped(Builder& b, Value* scores, double cap);
// softmax over the keys. A sink [B or 1, N or 1, S or 1, 1] is one more score in every row, which
// takes its share and which nobody reads; null: none.
Value* Shares(Builder& b, Value* scores, Value* sink);

}  // namespace mlc
