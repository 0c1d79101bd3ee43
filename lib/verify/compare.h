// lib/verify/compare.h - how far two tensors are apart, and whether that is within a budget.
//
// Error of an output = max |difference| / max(ptp(reference), max |reference|, 1e-6); RMSE over the
// same denominator. A NaN or infinity on one side only (or of different sign) is an infinite error.
// Integers and booleans must all be equal. A reference with more than one element and fewer than
// two distinct values discriminates nothing: it is reported so and counts for nothing.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc {

struct Budget {
  double max_error = 1e-3;
  double rmse = 1e-4;
};
// "fp32", "fp16", "int8" or a JSON file {"max_error": .., "rmse": ..}. Error "bad-name" otherwise.
Budget ParseBudget(std::string_view name_or_file);

struct Comparison {
  double max_error = 0;  // relative, as above; infinity possible
  double rmse = 0;
  double equal_fraction = 1;  // integers and booleans
  bool exact = false;         // compared for equality (integer or bool reference)
  bool discriminating = true;
  int64_t worst_index = -1;  // flat index of the largest difference
  double worst_value = 0, worst_reference = 0;
  std::string mismatch;  // shape or kind that cannot be compared; empty otherwise
  bool Within(const Budget& budget) const;
};
Comparison Compare(const Tensor& value, const Tensor& reference);
// "max error 1.2e-04, RMSE 3e-05", "100.00 % equal", or what cannot be compared.
std::string Describe(const Comparison& comparison);

}  // namespace mlc
