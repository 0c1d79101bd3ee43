// lib/lower/bits.h - bitwise operators on integers, and bit casts.
//
// MIL has no bitwise operators, so they are computed by division by powers of two. Operands broadcast. They have
// the source type `dtype` and stay in its range (lib/lower/convert.h). Operations on constants are
// computed in 64 bits; all others are exact for values that fit int32.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

Value* BitsAnd(Builder& b, Value* x, Value* y, DType dtype);
Value* BitsOr(Builder& b, Value* x, Value* y, DType dtype);
Value* BitsXor(Builder& b, Value* x, Value* y, DType dtype);
// Shifts x by a nonnegative number of bits; a shift by the width of the type or more gives 0. Error
// "unsupported-dtype" for a run-time left shift of 32-bit and 64-bit types.
Value* BitsShifted(Builder& b, Value* x, Value* by, bool left, DType dtype);

// Reinterprets the bits of x, whose source type is `from`, as `to`. Both must have the same width
// (8 for bool), else Error "bad-attribute". Supports constants of any type and, at run time,
// integers of at most 16 bits, bool, fp32 and int32; NaN payloads are not preserved. Error
// "unsupported-dtype" for other types.
Value* BitCast(Builder& b, Value* x, DType from, DType to);

}  // namespace mlc::lower
