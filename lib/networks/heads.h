// lib/networks/heads.h - attention heads. Letters of shapes: B batch, S queries, T keys, N heads, H
// head dimension.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// [B, S, N * H] -> [B, N, S, H]; Error "bad-operand" when the heads do not fill the width,
// "dynamic-shape" when that is not known.
Value* Heads(Builder& b, Value* x, int64_t heads);
// [B, N, S, H] -> [B, S, N * H], N and H known.
Value* Joined(Builder& b, Value* x);
// [B, N, T, H] with every head repeated `times` times: keys that groups of queries share.
// N is known.
Value* Repeated(Builder& b, Value* x, int64_t times);

}  // namespace mlc
