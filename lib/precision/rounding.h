// lib/precision/rounding.h - the default precision: fp16, except for values that would become
// infinite or NaN, and for a small part of the work where rounding takes an output out of its
// budget.
//
// For a value that leaves the range of fp16 but is finite in fp32, as few of the preceding
// operations as possible stay in fp32. Against rounding errors, at most kRoundingShare of the work
// stays in fp32, in one segment, and only if that brings every output within its budget: the
// operations before the failing outputs, those after the inputs, or those before the operation that
// amplifies the error most, whichever suffices alone. Outputs that still exceed their budgets are
// computed in fp16 and reported.
#pragma once

#include "lib/precision/precision_trials.h"

namespace mlc::precision {

inline constexpr double kRoundingShare = 0.05;

// `more` holds further inputs, which decide as well unless all outputs are far within their budgets:
// the first ones may be small, and the errors of a few elements vary much. A choice against their errors is searched with those steps alone that
// exceed a budget, and confirmed with all of them. `affordable` limits the work of all runs
// (MeasureInputs). Records in `measurement` which outputs exceed their budgets and what share
// --precision mixed would need.
Candidate SearchDefault(PrecisionTrials& trials, Jobs more, double affordable,
                        Measurement& measurement);

}  // namespace mlc::precision
