// lib/networks/rotary.h - rotary position embedding. Letters of shapes: B batch, S tokens, N heads,
// H head dimension.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::networks {

// Rotates the first dimensions of x [B, N, S, H] by the angles [B or 1, S, half of these
// dimensions]; their number must be known. Pairs (p, r) become (p cos - r sin, p sin + r cos). A
// pair is two adjacent elements (interleaved), or one of each half. Error "bad-operand" if there
// are more angles than pairs.
Value* Rotated(Builder& b, Value* x, Value* cosine, Value* sine, bool interleaved);

}  // namespace mlc::networks
