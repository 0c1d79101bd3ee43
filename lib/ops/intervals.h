// lib/ops/intervals.h - what is known of the size of a value's elements.
#pragma once

#include "lib/ir/program.h"
#include "lib/ops/range.h"

namespace mlc {

// The interval of a value from shape arithmetic and the rows of the operators that make it, some
// operations back; inputs, and what no row speaks of, may be all that their type holds.
Interval FindInterval(const Value& value);
// Whether no element is below zero, nor -inf.
inline bool IsNatural(const Value* value) { return FindInterval(*value).low >= 0; }

// The interval of a value when every float operand of the operation that makes it, constants
// included, is in `floats`.
Interval IntervalWhen(const Value& value, Interval floats);

}  // namespace mlc
