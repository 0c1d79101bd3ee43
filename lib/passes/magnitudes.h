// lib/passes/magnitudes.h - how large the numbers of fp32 constants are.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// The largest finite magnitude of each fp32 constant; 0 where it has none. All of them at once, read
// block by block and given back to the system.
std::vector<double> MaxMagnitudes(std::vector<Tensor> constants);

}  // namespace mlc
