// lib/passes/fp16_cancellation.h - finds arithmetic that loses accuracy in fp16 because of its form
// (cancellation, overflow of sums), for any input. fp16_sensitivity.h traces the results back to
// the operations that produce their operands.
#pragma once

#include <unordered_set>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::passes {

using Operations = std::unordered_set<const Operation*>;

// Returns the operations of differences that cancel: a mean of squares minus the square of the mean
// (either may be scaled), the operations between x and the difference, the subtraction of the mean
// from x next to it, and the operations that clamp, scale and take the root of the difference.
Operations FindVariances(const std::vector<const Operation*>& operations);

// The same for a sum of squares of x and a product of x next to it, as in |x|^2 - 2 x c + |c|^2,
// whose small result is a distance. The product is included, because it loses as many digits.
Operations FindDistances(const std::vector<const Operation*>& operations);

// Returns sums of squares, higher powers and magnitudes, and the operations that scale these sums,
// unless their intervals prove that fp16 can represent them: 256 squared is already infinite.
// Operands that were first divided by their largest magnitude are safe.
Operations FindLargeSums(const std::vector<const Operation*>& operations);

// Divisions by a product of two norms, or of two sums of squares (also for each pair of rows),
// together with the product and the operations that clamp it.
struct NormProducts {
  Operations operations;
  Operations norms;  // the operations that compute the factors
};
NormProducts FindNormProducts(const std::vector<const Operation*>& operations);

// Returns whether the operation subtracts constants that exceed 16 times the scale of the
// differences. The scale is the deviation for a batch norm, the next divisor for a difference from
// an unmodified input, and 1 for a difference from constants that are not all equal.
bool SubtractsLargeMean(const Operation& op);

}  // namespace mlc::passes
