// lib/ir/random_tensor.h - random tensors: the same on every machine for a seed.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc {

// Floats from N(0, 1), integers 0 or 1, bool. Tensors of one seed differ by `stream` (the number of
// the input). Error "unsupported-dtype" for strings and sub-byte types.
Tensor RandomTensor(DType dtype, Dims dims, uint64_t seed, uint64_t stream);

}  // namespace mlc
