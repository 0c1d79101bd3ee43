// lib/lower/order.h - elements in their order: the distinct ones, and the first of all.
#pragma once

#include <optional>

#include "lib/ir/builder.h"

namespace mlc {

struct Distinct {
  Value* values;   // the distinct slices
  Value* first;    // [n], where each is first
  Value* inverse;  // for each slice of x, its place among those
  Value* counts;   // [n], how often each occurs
};
// The distinct slices of x along a dimension, or its distinct elements: by size, where slices
// compare by the first elements that differ, or in the order in which they come.
//
// Constants are sorted, integers up to 2^53: Error "unsupported-dtype" beyond. At run time every
// slice is compared with every other, and how many differ only the run time knows: Error
// "dynamic-shape" where sizes are not known, "empty-tensor", "resource-limit" above 2^26
// comparisons. Places are int32 then, else int64.
Distinct DistinctSlices(Builder& b, Value* x, std::optional<int> along, bool sorted);

// Where the first k (int32 of one element, at most the size) elements of the whole order along
// `axis` are: int32, as x with k elements there. For a k that only the run time knows; else MIL
// has topk.
Value* FirstOfOrder(Builder& b, Value* x, int axis, Value* k, bool largest);

}  // namespace mlc
