// lib/lower/convert.h - maps element types of a source model to those of run-time values in MIL.
//
// A run-time value is fp32 (for floats of any width; lib/passes decides what is computed in fp16),
// int32 (for integers of any width, within the range of the source type) or bool. Constants keep
// the source type until an operation uses them.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

// The element type of run-time values with this source type; kNone if the type is not supported.
DType RuntimeType(DType source);
// Converts a constant of source type `dtype` to RuntimeType(dtype); returns other values unchanged.
// Used for constants that determine the type of a run-time result. Error "constant-range" if a
// value does not fit.
Value* AtRunTime(Builder& b, Value* value, DType dtype);
// Converts `value` to source type `to`: floats truncate toward zero or round to a narrower float,
// integers wrap, and nonzero values are true. Error "unsupported-dtype" if either type is not
// supported.
Value* Convert(Builder& b, Value* value, DType from, DType to);
// Clears the low 16 bits of each element of an fp32 value.
Value* CutToBf16(Builder& b, Value* x);
// Wraps an int32 value to the range of int8, uint8, int16 or uint16; returns it unchanged for other
// types.
Value* Wrap(Builder& b, Value* value, DType dtype);

}  // namespace mlc::lower
