// lib/passes/constant_ranges.h - magnitudes of fp32 constants.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::passes {

// Returns the largest finite magnitude of each fp32 constant, or 0 if it has none. Reads all
// constants in one pass, block by block, and releases their pages. For integers with scales only
// the scales are read. For values that were converted from fp16, a few elements are read, if they
// prove that the magnitude is at least `low` and below `high`; the result is then some number in
// that range.
std::vector<double> MaxMagnitudes(std::vector<Tensor> constants, double low, double high);

}  // namespace mlc::passes
