// lib/engine/panels.h - products of matrices whose weights stay as they are: pieces of at most 1 MB
// are expanded at a time, each in the cache of the thread that multiplies it.
#pragma once

#include "lib/engine/gemm.h"
#include "lib/engine/weights.h"

namespace mlc {

// How a product is computed.
struct Method {
  const Tiles* tiles = &AvailableTiles().front();
  // The sum of products of two vectors in an order of its own; null: in the order of gemm.h.
  float (*dot)(const float* a, const float* b, int64_t count) = nullptr;
  int threads = 1;

  // The same bytes on every processor with any number of threads, or what is fastest here.
  static Method Reproducible(int threads) { return {.threads = threads}; }
  static Method Fast(int threads) {
    const FusedLoops& loops = AvailableFusedLoops().front();
    return {&loops.tiles, loops.dot, threads};
  }
  Method With(int other) const { return {tiles, dot, other}; }
};

// Elements of a matrix: (i, j) is weight number first + i * row + j * column, and one of both is 1.
struct WeightView {
  const Weights* weights;
  int64_t first = 0, row = 0, column = 1;

  WeightView Transposed() const { return {weights, first, column, row}; }
  // Where the elements lie as fp32; data is null where they do not.
  MatrixView InPlace() const {
    return {weights->data() ? weights->data() + first : nullptr, row, column};
  }
};

// The view must outlive it.
Columns ColumnsOf(const WeightView& view, int64_t n);

// c [m, n] += left [m, k] right [k, n]; the rows of c are `stride` apart.
void AddProduct(const WeightView& left, int64_t m, int64_t k, const Columns& right, int64_t n,
                float* c, int64_t stride, const Method& method);

// Below so many vectors a product is one of each with each: tiles would be mostly empty.
inline constexpr int64_t kFewVectors = 6;
// c(i, j) = c[i * row + j * column], of m weights' rows and n vectors x [n, k], += their products.
// The view's column is 1, the method has a dot.
void AddDots(const WeightView& left, int64_t m, int64_t k, const float* x, int64_t n, float* c,
             int64_t row, int64_t column, const Method& method);

}  // namespace mlc
