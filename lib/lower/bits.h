// lib/lower/bits.h - operators on the bits of integers.
//
// MIL has none: powers of two divide a number into its bits. Operands broadcast. They are of the
// source type `dtype`, whose range they do not leave (lib/lower/convert.h); constants beside
// constants are computed in 64 bits, everything else is exact for values that int32 holds.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

Value* BitsAnd(Builder& b, Value* x, Value* y, DType dtype);
Value* BitsOr(Builder& b, Value* x, Value* y, DType dtype);
Value* BitsXor(Builder& b, Value* x, Value* y, DType dtype);
// x shifted by a number of bits that is not negative; as many as the type has, or more, give 0.
// Error "unsupported-dtype" to the left at run time for types of 32 and 64 bits.
Value* BitsShifted(Builder& b, Value* x, Value* by, bool left, DType dtype);

}  // namespace mlc
