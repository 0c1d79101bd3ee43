// lib/ops/quantized.h - constants in quantised form as floats.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc {

// scale * (data - offset) in the float type `dtype`, each element computed in double and rounded
// once when someone reads it; it keeps `form`. data is of rank 1 or more, and its dimensions are
// multiples of scale's.
Tensor Dequantized(Quantized form, DType dtype);

}  // namespace mlc
