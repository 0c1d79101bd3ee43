// lib/ir/concat_slice.h - slices and concatenations of tensors.
//
// All element types except strings are supported (Error "unsupported-dtype"). Results above
// Tensor::kLazyElements are lazy: elements are fetched from the sources when read. The result keeps
// an encoding if it has one (encoding.h).
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// Elements [begin, end) along an axis.
Tensor Slice(const Tensor& x, int axis, int64_t begin, int64_t end);
// Concatenates tensors along an axis. They must have the same dtype, and the same shape except for
// the axis.
Tensor Join(const std::vector<Tensor>& parts, int axis);
// Concatenates pieces row by row: piece k has outer * w[k] elements, and each of the `outer` rows
// of the result has w[0] + w[1] + ... elements. All pieces have the same dtype; outer > 0. Drops
// encodings.
Tensor SideBySide(const std::vector<Tensor>& pieces, int64_t outer, const Dims& dims);

}  // namespace mlc
