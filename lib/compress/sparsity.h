// lib/compress/sparsity.h - which elements of a weight become zero.
#pragma once

#include "lib/compress/scheme.h"
#include "lib/compress/weight_view.h"

namespace mlc::compress {

// Returns the mask of the elements that stay, in the order of the view: those of the largest
// magnitude, in the weight as a whole or among every few inputs; of equal ones the first become
// zero. Magnitudes are multiplied by `importance`, one number per column of the view, if given. A
// last group of fewer inputs has the same share of zeros, rounded down.
Tensor MaskOfLargest(const WeightView& view, const Scheme& scheme,
                     std::span<const float> importance);

// The elements where the mask is set, 0 elsewhere.
Tensor Masked(const Tensor& numbers, const Tensor& mask);

}  // namespace mlc::compress
