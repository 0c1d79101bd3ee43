// lib/engine/laying.h - weights as kernels of others want them laid, expanded anew for each
// product.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/engine/weights.h"

namespace mlc {

// Where the elements of a matrix go: (i, j) to out[rows[i] + columns[j]].
struct Placement {
  std::vector<int32_t> rows, columns;
  int64_t size = 0;  // of out; what no element goes to is zero
};

// Element (i, j) is weight number first + i * row + j. By the threads of team.h.
void Lay(const Weights& weights, int64_t first, int64_t row, const Placement& placement,
         int threads, float* out);

}  // namespace mlc
