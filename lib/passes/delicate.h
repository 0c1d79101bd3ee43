// lib/passes/delicate.h - arithmetic that fp16 ruins by how it is written, whatever its numbers are:
// digits.h follows it back to what makes its operands.
#pragma once

#include <unordered_set>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

using Operations = std::unordered_set<const Operation*>;

// Of the operations, those of differences that cancel: a mean of squares minus the square of the
// mean, however both are scaled, with all that is between x and the difference; x minus its mean
// beside it; and what bounds, scales and takes the root of the difference.
Operations FindVariances(const std::vector<const Operation*>& operations);

// The same of a sum of squares of x, and a product of x beside it, as of |x|^2 - 2 x c + |c|^2: what is
// left is a distance. The product is among them, since it leaves as little of itself.
Operations FindDistances(const std::vector<const Operation*>& operations);

// Squares, higher powers and magnitudes that are summed, with what scales their sums, where no interval
// proves that fp16 holds them: 256 squared is infinite. Those that are divided by their greatest first are safe.
Operations FindLargeSums(const std::vector<const Operation*>& operations);

// What is divided by a product of two norms, or of sums of squares, for each pair of rows too, with
// the product and what bounds it.
struct NormProducts {
  Operations operations;
  Operations norms;  // what makes the factors
};
NormProducts FindNormProducts(const std::vector<const Operation*>& operations);

// Whether the operation subtracts constants that are more than 16 times what the differences are
// scaled to: a batch norm, of its deviations, or a difference, of an input as it comes, of what divides
// it next, or 1 where the constants differ.
bool SubtractsLargeMean(const Operation& op);

}  // namespace mlc
