// lib/ir/tensor_range.h - the smallest and largest element of a constant.
#pragma once

#include <string_view>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {

// Computes what Tensor::range() caches. Reads block by block and releases the pages.
Tensor::Range RangeOf(const Tensor& tensor);

// The error for a constant that contains NaN or infinity.
Error NotFinite(std::string_view name);

}  // namespace mlc
