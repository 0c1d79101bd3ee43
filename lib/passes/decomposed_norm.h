// lib/passes/decomposed_norm.h - normalisations that a program spells out with arithmetic.
//
//   v = reduce_mean(square(d), axes, keep_dims); y = d / sqrt(v + epsilon)
//
// where d is x or x - mean(x). The square may be mul, pow 2 or square; the division by a root may be
// real_div, or mul with rsqrt, inverse, 1 / x or pow -0.5. The axes are the last dimensions, whose
// sizes are known, and epsilon is positive.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::passes {

struct DecomposedNorm {
  Value* d = nullptr;
  Operation* square = nullptr;  // of d
  std::vector<int64_t> axes;    // ascending
  double epsilon = 0;
};

// Returns the axes of a reduction over trailing dimensions with keep_dims, in ascending order; empty
// for any other reduction.
std::vector<int64_t> TrailingAxes(const Operation& reduce);

// Calls rewrite(norm) for each operand that `divide` normalises, until a call returns true, and
// returns whether one did. What lies between d and `divide` has no other users.
bool ForDecomposedNorm(const Operation* divide,
                       const std::function<bool(const DecomposedNorm&)>& rewrite);

// Returns the constant, which broadcasts against values of this shape, as a tensor of the dimensions
// `axes`; empty if it varies along another dimension.
Tensor AsNormParameter(const Tensor& constant, const Shape& shape,
                       const std::vector<int64_t>& axes);

}  // namespace mlc::passes
