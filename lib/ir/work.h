// lib/ir/work.h - how much there is to compute.
#pragma once

#include "lib/ir/op_def.h"

namespace mlc {

// Multiplications for each element of the result; 1 for what looks at each element once. Open
// dimensions count 1.
double WorkPerElement(const OpContext& context);

}  // namespace mlc
