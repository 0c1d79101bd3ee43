// lib/engine/panels.h - products of matrices whose weights stay as they are: pieces of at most 1 MB
// are expanded at a time, each in the cache of the thread that multiplies it.
#pragma once

#include <type_traits>

#include "lib/engine/gemm.h"
#include "lib/engine/weights.h"

namespace mlc {

// How a product is computed: with the loops of an instruction set, on so many threads.
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

// c [m, n] += left [m, k] right [k, n]; the rows of c are `stride` apart. T is float or double
// (gemm.h).
template <class T>
void AddProduct(const WeightView& left, int64_t m, int64_t k, const Columns& right, int64_t n, T* c,
                int64_t stride, const Method& method);

// Below so many vectors a product is one of each with each: tiles would be mostly empty.
inline constexpr int64_t kFewVectors = 6;
// c(i, j) = c[i * row + j * column], of m weights' rows and n vectors x [n, k], += their products.
// The view's column is 1.
template <class T>
void AddDots(const WeightView& left, int64_t m, int64_t k, const float* x, int64_t n, T* c,
             int64_t row, int64_t column, const Method& method);

}  // namespace mlc
