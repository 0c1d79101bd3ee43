// lib/engine/weight_repack.h - expands encoded weights into the layouts of oneDNN's kernels, once
// per product.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/engine/product_weights.h"

namespace mlc::engine {

// The layout of a matrix: element (i, j) is stored in out[rows[i] + columns[j]].
struct RepackPlan {
  std::vector<int32_t> rows, columns;
  int64_t size = 0;  // size of out; positions without an element are zero
};

// Element (i, j) is weight first + i * row + j. Runs on the thread team (omp_parallel.h).
void RepackWeights(const Weights& weights, int64_t first, int64_t row, const RepackPlan& placement,
                   int threads, float* out);

}  // namespace mlc::engine
