// lib/networks/rotary.h - rotary position embedding. Letters of shapes: B batch, S tokens, N heads, H
// elements of a head.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// x [B, N, S, H] with its first elements turned by the angles [B or 1, S, half of them], whose
// number is known: pairs (p, r) become (p cos - r sin, p sin + r cos). Pairs are neighbours
// (interleaved), or one of each half. Error "bad-operand" when there are more angles than pairs.
Value* Rotated(Builder& b, Value* x, Value* cosine, Value* sine, bool interleaved);

}  // namespace mlc
