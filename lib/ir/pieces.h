// lib/ir/pieces.h - contiguous parts of tensors, and tensors put together.
//
// Elements of all types but strings (Error "unsupported-dtype"). Results above Tensor::kLazyElements
// are lazy: elements are fetched from the sources when somebody reads them. Encodings stay where
// there is one for the result (encoding.h).
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// Elements [begin, end) of an axis.
Tensor Slice(const Tensor& x, int axis, int64_t begin, int64_t end);
// Tensors of one type and of one shape but for the axis, one after the other along it.
Tensor Join(const std::vector<Tensor>& parts, int axis);
// The pieces next to each other in each of `outer` rows: piece k has outer * w[k] elements, a row
// of the result is w[0] + w[1] + ... elements. All have one dtype; outer > 0. No encodings.
Tensor SideBySide(const std::vector<Tensor>& pieces, int64_t outer, const Dims& dims);

}  // namespace mlc
