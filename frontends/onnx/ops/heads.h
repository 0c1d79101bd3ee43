// frontends/onnx/ops/heads.h - what attention and its relatives share. Letters of shapes: B batch, S
// queries, T keys, N heads, H elements of a head.
#pragma once

#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

Value* Binary(Node& node, std::string_view op, Value* x, Value* y);
Value* Transposed(Node& node, Value* x, const std::vector<int64_t>& perm);
Value* Concat(Node& node, std::vector<Value*> values, int64_t axis);
Value* Expanded(Node& node, Value* x, const std::vector<int64_t>& axes);
std::vector<Value*> Parts(Node& node, Value* x, const std::vector<int64_t>& sizes, int64_t axis);

// A dimension of a reshape: a number, or that of a value.
struct Size {
  int64_t number;
  Value* of = nullptr;
  int axis = 0;
  Size(int64_t n) : number(n) {}  // NOLINT
  Size(Value* value, int i);      // NOLINT
};
Value* Reshaped(Node& node, Value* x, const std::vector<Size>& sizes);

// [B, S, N * H] -> [B, N, S, H]; Error "bad-operand" when the heads do not fill the width.
Value* Heads(Node& node, Value* x, int64_t heads);
// [B, N, S, H] -> [B, S, N * H]
Value* Joined(Node& node, Value* x);
// [B, N, T, H] with every head `times` times, one after another.
Value* Repeated(Node& node, Value* x, int64_t times);

// Element `index` of dimension `axis`, which goes away.
Value* Element(Node& node, Value* x, int64_t index, int axis);
// A dimension as an int32 scalar.
Value* DimOf(Node& node, Value* x, int axis);
// 0, 1, ..., the size of a dimension.
Value* Count(Node& node, Value* x, int axis);

// x [B, N, S, H] with its first elements turned by the angles [B or 1, S, half of them]. Pairs are
// neighbours (interleaved), or one of each half.
Value* Rotated(Node& node, Value* x, Value* cosine, Value* sine, bool interleaved);
// Those rows of a table.
Value* Rows(Node& node, Value* table, Value* indices);

}  // namespace mlc::onnx
