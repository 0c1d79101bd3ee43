// lib/ops/quantized.h - constants in quantised form as floats.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc {

// scale * (data - offset) in the float type `dtype`, each element computed in double and rounded
// once when someone reads it; it keeps `form`. data is of rank 1 or more, and its dimensions are
// multiples of scale's.
Tensor Dequantized(Quantized form, DType dtype);

// Bytes that hold `count` numbers of 1 to 8 bits, least significant bit first, as a vector of them;
// 5 and 7 bits become uint8.
Tensor Unpacked(const Tensor& bytes, int bits, int64_t count);

}  // namespace mlc
