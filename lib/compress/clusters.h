// lib/compress/clusters.h - numbers on a line in groups whose squared distances from their means are least.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlc {

// The means of the `most` groups, or of as many as there are different values, in ascending order. The optimum, by dynamic
// programming: optimal groups are neighbours, and where the last of k begins grows with where it ends, so that
// a range of begins is halved with the range of ends (Groenlund et al. 2017, "Fast exact k-means, k-medians
// and Bregman divergence clustering in 1D", section 2). `values` ascend and differ; `counts`, how often
// each is there, are positive. Time most * n log n, memory most * n.
std::vector<double> OptimalMeans(std::span<const double> values, std::span<const double> counts,
                                 int most);

}  // namespace mlc
