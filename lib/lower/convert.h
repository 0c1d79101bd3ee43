// lib/lower/convert.h - element types of a source against those of run-time values in MIL.
//
// A run-time value is fp32 (a float of any width: lib/passes decides what is computed in fp16), int32
// (an integer of any width, in the range of its source type) or bool. Constants have the source type
// itself until an operation takes them.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// The element type that run-time values of a source type have in the Program; kNone: cannot be
// computed with.
DType RuntimeType(DType source);
// A constant narrowed to the type that its source type has at run time; others as they are. For
// constants that give a run-time result its type. Error "constant-range" when a value does not fit.
Value* AtRunTime(Builder& b, Value* value, DType dtype);
// `value` as source type `to`: floats truncate toward zero or round to a narrower float, integers
// wrap, anything but zero is true. Error "unsupported-dtype" when either cannot be computed with.
Value* Convert(Builder& b, Value* value, DType from, DType to);
// An fp32 value with the last 16 bits of each element cut off.
Value* CutToBf16(Builder& b, Value* x);
// An int32 value brought back into the range of int8, uint8, int16 or uint16 by wrapping; other
// types as they are.
Value* Wrap(Builder& b, Value* value, DType dtype);

}  // namespace mlc
