// lib/lower/sort.h - sorting: the distinct elements or slices of a tensor, and the first k
// elements in order.
#pragma once

#include <optional>

#include "lib/ir/builder.h"

namespace mlc::lower {

struct Distinct {
  Value* values;   // the distinct slices
  Value* first;    // [n], index of the first occurrence of each
  Value* inverse;  // for each slice of x, its index in `values`
  Value* counts;   // [n], number of occurrences of each
};
// The distinct slices of x along a dimension, or its distinct elements, either sorted (slices
// compare lexicographically) or in order of first occurrence.
//
// Constants are sorted at compile time, integers up to 2^53: Error "unsupported-dtype" beyond. At
// run time every slice is compared with every other, and the number of distinct slices is unknown:
// Error "dynamic-shape" if sizes are unknown, "empty-tensor", or "resource-limit" above 2^26
// comparisons. Indices are int32 at run time, int64 otherwise.
Distinct DistinctSlices(Builder& b, Value* x, std::optional<int> along, bool sorted);

// The indices of the first k elements (k is int32 with one element, at most the size) in sorted
// order along `axis`: int32, shaped like x with size k along `axis`. For a k that is known only at
// run time; MIL's topk handles constants.
Value* FirstOfOrder(Builder& b, Value* x, int axis, Value* k, bool largest);

}  // namespace mlc::lower
