// lib/ir/tensor_range.h - the least and the greatest element of a constant, found by reading all of it.
#pragma once

#include <string_view>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {

// What Tensor::range() keeps once it was asked for. Reads block by block and gives back the pages.
Tensor::Range RangeOf(const Tensor& tensor);

// What is said of a constant, a weight above all, that holds NaN or infinity.
Error NotFinite(std::string_view name);

}  // namespace mlc
