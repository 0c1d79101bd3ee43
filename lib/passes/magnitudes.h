// lib/passes/magnitudes.h - how large the numbers of fp32 constants are.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// The largest finite magnitude of each fp32 constant; 0 where it has none. All of them at once, read
// block by block and given back to the system. Of integers with scales the scales, and of what was
// fp16 a few elements are read alone where they prove that it is at least `low` and below `high`: then
// it is any number there.
std::vector<double> MaxMagnitudes(std::vector<Tensor> constants, double low, double high);

}  // namespace mlc
