// tools/runtime/tensor.h - tensors in memory of the caller.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/tensor.h"
#include "tools/runtime/mlc.h"

namespace mlc::abi {

// Returns the element type for a constant of mlc.h. Error "usage" for another number; `what` names
// the tensor.
DType DTypeFrom(int32_t number, std::string_view what);
int32_t NumberOf(DType dtype);  // 0 for kNone

// Reads `rank` sizes. Error "usage" for a negative rank or size; `what` names the tensor.
Dims DimsFrom(int32_t rank, const int64_t* dims, std::string_view what);

// Returns a tensor that refers to the memory of the caller, unless strides require a copy. `what`
// names it in errors. Error "usage" for an invalid description, or strings.
Tensor Borrowed(const mlc_tensor* tensor, const std::string& what);
// The same, for memory that must be dense, with a function that is called when it is no longer
// used.
Tensor Lent(const mlc_tensor* tensor, const std::string& what, std::function<void()> release);
// Returns a tensor that owns a copy of the elements.
Tensor Copied(const mlc_tensor* tensor, const std::string& what);

// Copies the elements of `from`, converted to `dtype`, into the memory of the caller, which must
// have this type and the sizes of `from`. Error "bad-input".
void CopyTo(const mlc_tensor* to, const Tensor& from, DType dtype, const std::string& what);

}  // namespace mlc::abi
