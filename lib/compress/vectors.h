// lib/compress/vectors.h - tables of vectors, by k-means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlc::compress {

// The `size` vectors of `length` elements that represent the vectors of `numbers` with a small
// squared error, in ascending order of the first element: the best of several runs of Lloyd's
// algorithm from seeds drawn by k-means++. Each vector counts by its weight; no weights: 1.
// Deterministic. `numbers` may be a sample of all vectors.
std::vector<float> VectorTable(std::span<const float> numbers, std::span<const float> weights,
                               int64_t length, int64_t size);

// The index of the vector of the table nearest to `vector`; the lowest of several. First elements
// ascend in the table, so that only vectors with a similar one are compared.
int64_t NearestVector(std::span<const float> table, const float* vector, int64_t length);
double SquaredDistance(const float* a, const float* b, int64_t length);

}  // namespace mlc::compress
