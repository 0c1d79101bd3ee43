// lib/lower/bit_cast.h - the bits of a value as one of another type.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// x of the source type `from` with its bits read as `to`, which has as many (bool has 8): Error
// "bad-attribute" else. Constants of any type; at run time integers of at most 16 bits and bool,
// fp32 and int32, where a NaN becomes the usual one: Error "unsupported-dtype" for others.
Value* BitCast(Builder& b, Value* x, DType from, DType to);

}  // namespace mlc
