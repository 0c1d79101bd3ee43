// lib/ir/tensor_range.h - the least and the greatest element of a constant, found by reading all of it.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc {

// What Tensor::range() keeps once it was asked for. Reads block by block and gives back the pages.
Tensor::Range RangeOf(const Tensor& tensor);

}  // namespace mlc
