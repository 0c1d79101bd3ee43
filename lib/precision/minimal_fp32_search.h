// lib/precision/minimal_fp32_search.h - --precision mixed: a minimal set of fp32 operations that
// meets a budget.
//
// The limits are 15 % below the budget, or 1.25 times the floor, because other kernels round
// differently. The choice is confirmed on further inputs; those on which it fails are added, and
// the search runs again. The choice is then confirmed with sums in other orders
// (sum_order_perturbation.h), as in the kernels of other implementations: if a gate amplifies
// low-order bits, fitting in one order may be chance. After a failure, candidates are run in
// several orders.
#pragma once

#include "lib/precision/precision_trials.h"

namespace mlc::precision {

// `confirming` holds further inputs, too many to run for every candidate.
Candidate FindMinimalFp32(PrecisionTrials& trials, Jobs confirming);

}  // namespace mlc::precision
