// frontends/onnx/ops/heads.h - what attention and its relatives share. Letters of shapes: B batch, S
// queries, T keys, N heads, H elements of a head.
#pragma once

#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// [B, S, N * H] -> [B, N, S, H]; Error "bad-operand" when the heads do not fill the width.
Value* Heads(Node& node, Value* x, int64_t heads);
// [B, N, S, H] -> [B, S, N * H]
Value* Joined(Node& node, Value* x);
// [B, N, T, H] with every head `times` times, one after another.
Value* Repeated(Node& node, Value* x, int64_t times);

// x [B, N, S, H] with its first elements turned by the angles [B or 1, S, half of them]. Pairs are
// neighbours (interleaved), or one of each half.
Value* Rotated(Node& node, Value* x, Value* cosine, Value* sine, bool interleaved);

}  // namespace mlc::onnx
