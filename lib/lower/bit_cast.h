// lib/lower/bit_cast.h - reinterprets the bits of a value as another type.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

// Reinterprets the bits of x, whose source type is `from`, as `to`. Both must have the same width
// (8 for bool), else Error "bad-attribute". Supports constants of any type and, at run time,
// integers of at most 16 bits, bool, fp32 and int32; NaN payloads are not preserved. Error
// "unsupported-dtype" for other types.
Value* BitCast(Builder& b, Value* x, DType from, DType to);

}  // namespace mlc::lower
