// lib/ops/strided_view.h - strided views: rearranging elements without computation.
//
// Results above Tensor::kLazyElements are lazy: elements are fetched from the sources when read.
// Error "unsupported-dtype" for strings and sub-byte types, unless the result is an entire source
// in its own order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/ir/dispatch_width.h"
#include "lib/ir/op_def.h"

namespace mlc {

// Copies runs of elements out of a tensor without loading all of a lazy tensor or a file slice into
// memory.
class ElementSource {
 public:
  explicit ElementSource(Tensor tensor);
  // Copies elements first, first + step, ... (`count` of them) to `out`; step may be zero or
  // negative.
  void Copy(int64_t first, int64_t step, int64_t count, std::byte* out) const;
  const Tensor& tensor() const { return tensor_; }
  size_t width() const { return width_; }  // bytes per element

 private:
  Tensor tensor_;
  const std::byte* memory_ = nullptr;  // null: reads through the tensor
  size_t width_;
};

// out[i] = x[base + sum(i[d] * strides[d])], in elements of row-major x. Strides may be zero or
// negative. Every index must lie within x. A contiguous view shares the storage of x.
Tensor StridedView(const Tensor& x, const Dims& dims, const Dims& strides, int64_t base = 0);

// Error "resource-limit" if a result of these dims exceeds what Core ML can represent. Operators
// whose results may be much larger than their operands (fill, tile, pad, ...) call it before they
// allocate.
void CheckResultSize(const OpContext& context, const Dims& dims);

// The minimum of two dimensions.
Dim Min(const Dim& a, const Dim& b);

// Propagates the known elements of operand `name` (rank 0 or 1) to a result with the same elements
// in order.
void PassElements(InferContext& context, std::string_view name);

}  // namespace mlc
