// lib/compress/clusters.h - optimal one-dimensional k-means clustering.
#pragma once

#include <span>
#include <vector>

namespace mlc::compress {

// The means of at most `most` clusters with minimal squared error, in ascending order; there are
// fewer if there are fewer values. Computed exactly by dynamic programming: optimal clusters are
// contiguous, and the start of the last of k clusters is monotonic in its end, so the range of
// starts is halved together with the range of ends (Groenlund et al. 2017, "Fast exact k-means,
// k-medians and Bregman divergence clustering in 1D", section 2). `values` are distinct and
// ascending; `counts`, their multiplicities, are positive. Time most * n log n, memory most * n.
std::vector<double> OptimalMeans(std::span<const double> values, std::span<const double> counts,
                                 int most);

}  // namespace mlc::compress
