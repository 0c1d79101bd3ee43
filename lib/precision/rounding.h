// lib/precision/rounding.h - the default precision: fp16, but for what would be infinite or NaN, and
// for a little of the work where rounding takes an output out of its budget.
//
// A value that leaves fp16 and is a number in fp32 keeps the operations that make it in fp32, as few
// as do. For rounding at most kRoundingShare of the work stays fp32, in one segment, and only where
// that brings every output within its budget: the operations before the outputs that are beyond,
// those behind the inputs, or those before the operation that makes the error greatest, whatever
// does it alone. What is beyond its budget after that stays fp16 and is said.
#pragma once

#include "lib/precision/trials.h"

namespace mlc {

inline constexpr double kRoundingShare = 0.05;

// `more`: inputs that are run where the first leave open whether an output is within its budget,
// between a third of it and three times as much. `affordable` work of all runs (MeasureInputs). Fills
// in what the choice misses of the budgets and what --precision mixed would cost.
Candidate SearchDefault(Trials& trials, Jobs more, double affordable, Measurement& measurement);

}  // namespace mlc
