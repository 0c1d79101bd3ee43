// lib/engine/gemm.h - products of matrices of floats.
//
// Summed in double an element of a product is ((c + p0) + p1) + ..., in order of k: a product of
// two floats is exact there, so that the bits are those of `eval` on every processor, with and
// without fused multiplications and additions. Summed in float the last digits are this
// processor's. Threads, vectors and the shapes of blocks decide only which elements are computed at
// the same time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace mlc {

// Element (i, j) of a matrix is data[i * row + j * column].
struct MatrixView {
  const float* data = nullptr;
  int64_t row = 0, column = 1;
};

inline constexpr int kTileRows = 6, kTileColumns = 16, kTileDepth = 256;

// c [rows, 16] += a [rows, depth] b [depth, 16]: a is stored by columns, the rows of b follow each
// other, those of c are `stride` apart.
template <class T>
using Tile = void (*)(const T* a, const T* b, int64_t depth, T* c, int64_t stride);
// For 1, 2, ... rows.
template <class T>
using Tiles = std::array<Tile<T>, kTileRows>;
// What multiplies for one instruction set.
struct ProductLoops {
  Tiles<float> tiles;
  Tiles<double> exact;
  // The sum of a[i] b[i], in an order of its own.
  float (*dot)(const float* a, const float* b, int64_t count);
  // sums[r] += rows[r * stride + i] x[i] for r < 16, in order of i.
  void (*exact_dots)(const float* rows, int64_t stride, const double* x, int64_t count,
                     double* sums);
};
// What this processor can run, the fastest first.
std::span<const ProductLoops> AvailableLoops();

// A left operand [m, k] laid out for tiles.
class PackedRows {
 public:
  PackedRows(const MatrixView& view, int64_t m, int64_t k, int threads = 1);
  int64_t m() const { return m_; }
  int64_t k() const { return k_; }
  // Rows from i (a multiple of 6) on, of the columns from k0 (a multiple of 256) on.
  const float* At(int64_t i, int64_t k0) const;

 private:
  int64_t m_, k_;
  std::unique_ptr<float[]> data_;
};

// A right operand [k, n]: gives rows [k0, k0 + depth) of the 16 columns from j0 (a multiple of 16)
// on, one row after the other, in memory of its own or in `scratch`, which has room for them.
// Columns from n on may hold anything. Called by several threads.
using Columns = std::function<const float*(int64_t k0, int64_t depth, int64_t j0, float* scratch)>;
// Laid out at each call; `view` must outlive it.
Columns ColumnsOf(const MatrixView& view, int64_t n);
// Laid out now.
Columns PackColumns(const MatrixView& view, int64_t k, int64_t n);

// How many threads a number of multiplications is worth, at most `threads`.
int WorthThreads(double multiplications, int threads);

// c [m, n] += left [m, k] right [k, n]; the rows of c are `stride` apart. T is float or double.
template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads, const Tiles<T>& tiles);
// With this processor's fastest tiles.
template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads);

}  // namespace mlc
