// lib/precision/least.h - --precision mixed: the least in fp32 that meets a budget.
//
// Wanted is less than the budget, as other kernels round otherwise: 15 % below it, or within 1.25
// floors. What was chosen is then run on the inputs that confirm; those that disprove it are taken
// in, and it is chosen anew. Then it is run with sums in other orders (other_sums.h), of which
// others' kernels have one: a gate can make a last digit great, and what fits in one order alone
// fits by chance. Where that disproves it, candidates are run in several orders from then on.
#pragma once

#include "lib/precision/trials.h"

namespace mlc {

// `confirming`: more inputs than are affordable in each run.
Candidate SearchLeast(Trials& trials, Jobs confirming);

}  // namespace mlc
