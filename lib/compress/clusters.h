// lib/compress/clusters.h - optimal one-dimensional k-means clustering.
#pragma once

#include <span>
#include <vector>

namespace mlc::compress {

// The means of at most `most` clusters with minimal squared error, in ascending order; there are
// fewer if there are fewer values. Exact: the optimal number of clusters falls with a penalty per
// cluster, and a partition that is optimal for a penalty is optimal for its number of clusters, so
// that a few solutions of the problem with a penalty suffice, whatever the number of clusters is. If
// no penalty gives `most` clusters, dynamic programming over the number of clusters does. `values`
// are distinct and ascending, at most 65536; `weights` are positive: multiplicities, importance or
// their product. Time about n log n, memory 48 n bytes.
std::vector<double> OptimalMeans(std::span<const double> values, std::span<const double> weights,
                                 int most);

}  // namespace mlc::compress
