// lib/ops/value_range.h - bounds on the elements of a value.
#pragma once

#include "lib/ir/program.h"
#include "lib/ops/range_rules.h"

namespace mlc {

// The interval of a value, from shape arithmetic and the range rules of the operations that produce
// it, up to a limited depth. Inputs, and results without a rule, may be anything that their dtype
// represents.
Interval FindInterval(const Value& value);
// Returns whether every element is at least 0; -inf is excluded.
inline bool IsNatural(const Value* value) { return FindInterval(*value).low >= 0; }

// The interval of a value, assuming that every float operand of its defining operation, constants
// included, lies in `floats`.
Interval IntervalWhen(const Value& value, Interval floats);

}  // namespace mlc
