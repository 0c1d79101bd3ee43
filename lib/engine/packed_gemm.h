// lib/engine/packed_gemm.h - matrix products whose weights stay encoded: pieces of at most 1 MB are
// expanded one at a time, each in the cache of the thread that multiplies it.
#pragma once

#include <type_traits>

#include "lib/engine/gemm.h"
#include "lib/engine/product_weights.h"

namespace mlc::engine {

// The implementation of a product: the loops of an instruction set, and the number of threads.
struct Method {
  const ProductLoops* loops = &AvailableLoops().front();
  int threads = 1;

  Method With(int other) const { return {loops, other}; }
  template <class T>
  const Tiles<T>& tiles() const {
    if constexpr (std::is_same_v<T, float>)
      return loops->tiles;
    else
      return loops->exact;
  }
};

// A matrix whose element (i, j) is weight first + i * row + j * column; row or column is 1.
struct WeightView {
  const Weights* weights;
  int64_t first = 0, row = 0, column = 1;

  WeightView Transposed() const { return {weights, first, column, row}; }
  // Returns the view of fp32 elements in memory; its data is null if they are not stored so.
  MatrixView InPlace() const {
    return {weights->data() ? weights->data() + first : nullptr, row, column};
  }
};

// The view must outlive the result.
Columns ColumnsOf(const WeightView& view, int64_t n);

// c [m, n] += left [m, k] right [k, n], where the rows of c are `stride` elements apart. T is float
// or double (gemm.h).
template <class T>
void AddProduct(const WeightView& left, int64_t m, int64_t k, const Columns& right, int64_t n, T* c,
                int64_t stride, const Method& method);

// With fewer vectors a product is computed as dot products, since tiles would be mostly empty.
inline constexpr int64_t kFewVectors = 6;
// Adds the dot products of m rows of weights and n vectors x [n, k] to c(i, j) = c[i * row + j *
// column]. The view's column is 1.
template <class T>
void AddDots(const WeightView& left, int64_t m, int64_t k, const float* x, int64_t n, T* c,
             int64_t row, int64_t column, const Method& method);

}  // namespace mlc::engine
