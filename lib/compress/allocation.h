// lib/compress/allocation.h - which of its schemes each weight gets, so that all together cost least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlc::compress {

// One scheme of a weight.
struct Choice {
  uint64_t bytes = 0;
  double cost = 0;  // the error that it adds to that of the program
};

// A choice for each weight.
struct Allocation {
  std::vector<size_t> chosen;
  uint64_t bytes = 0;
  double cost = 0;
};

// The allocation with the least cost of at most this many bytes; the smallest one if nothing fits. A
// choice that is not on the lower convex hull of its weight is never the best one for a price per
// byte, so that the steps of all hulls are taken in the order of what they gain per byte, as long as
// they fit.
Allocation AllocationFor(const std::vector<std::vector<Choice>>& weights, uint64_t most_bytes);

}  // namespace mlc::compress
