// lib/ops/move.h - rearranging elements without computing: strided views.
//
// Results above Tensor::kLazyElements are lazy: elements are fetched from the sources when somebody
// reads them. Error "unsupported-dtype" for strings and sub-byte types, unless the result is a
// whole source in its own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/ir/op_def.h"
#include "lib/ir/width.h"

namespace mlc {

// Copies runs of elements out of a tensor; does not bring a lazy tensor or a file slice into
// memory as a whole.
class ElementSource {
 public:
  explicit ElementSource(Tensor tensor);
  // Elements first, first + step, ... (count of them; step may be zero or negative) to out.
  void Copy(int64_t first, int64_t step, int64_t count, std::byte* out) const;
  const Tensor& tensor() const { return tensor_; }
  size_t width() const { return width_; }  // bytes of an element

 private:
  Tensor tensor_;
  const std::byte* memory_ = nullptr;  // null: read through the tensor
  size_t width_;
};

// out[i] = x[base + sum(i[d] * strides[d])], all in elements of row-major x; strides may be zero or
// negative. Every index must lie in x. A contiguous view shares x's storage.
Tensor StridedView(const Tensor& x, const Dims& dims, const Dims& strides, int64_t base = 0);

// Error "resource-limit" when a result of these dims is larger than anything Core ML could hold:
// operators that multiply elements (fill, tile, pad, ...) call it before they allocate.
void CheckResultSize(const OpContext& context, const Dims& dims);

// The smaller one.
Dim Min(const Dim& a, const Dim& b);

// Results whose elements are those of operand `name` (rank 0 or 1, in order): passes them on.
void PassElements(InferContext& context, std::string_view name);

}  // namespace mlc
