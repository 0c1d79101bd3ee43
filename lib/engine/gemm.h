// lib/engine/gemm.h - matrix products of floats.
//
// With double accumulators an element of a product is ((c + p0) + p1) + ..., in order of k. The
// product of two floats is exact in double, so the result is bit-identical to `eval` on every
// processor, with and without fused multiply-add. With float accumulators the last digits depend on
// the processor. Threads, vector width and block sizes determine only which elements are computed
// at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace mlc::engine {

// Element (i, j) of a matrix is data[i * row + j * column].
struct MatrixView {
  const float* data = nullptr;
  int64_t row = 0, column = 1;
};

inline constexpr int kTileRows = 6, kTileColumns = 16, kTileDepth = 256;

// c [rows, 16] += a [rows, depth] b [depth, 16]: a is stored in column-major order, the rows of b
// are contiguous, and the rows of c are `stride` elements apart.
template <class T>
using Tile = void (*)(const T* a, const T* b, int64_t depth, T* c, int64_t stride);
// The tiles for 1, 2, ... rows.
template <class T>
using Tiles = std::array<Tile<T>, kTileRows>;
// The inner loops of products for one instruction set.
struct ProductLoops {
  Tiles<float> tiles;
  Tiles<double> exact;
  // Returns the sum of a[i] b[i], in an unspecified order.
  float (*dot)(const float* a, const float* b, int64_t count);
  // sums[r] += rows[r * stride + i] * x[i] for r < 16, in order of i.
  void (*exact_dots)(const float* rows, int64_t stride, const double* x, int64_t count,
                     double* sums);
};
// The loops that this processor supports, fastest first.
std::span<const ProductLoops> AvailableLoops();

// A left operand [m, k], packed for tiles.
class PackedRows {
 public:
  PackedRows(const MatrixView& view, int64_t m, int64_t k, int threads = 1);
  int64_t m() const { return m_; }
  int64_t k() const { return k_; }
  // Returns the packed rows from i (a multiple of 6) and columns from k0 (a multiple of 256).
  const float* At(int64_t i, int64_t k0) const;

 private:
  int64_t m_, k_;
  std::unique_ptr<float[]> data_;
};

// A right operand [k, n]: returns rows [k0, k0 + depth) of the 16 columns from j0 (a multiple of
// 16), one row after the other, in its own memory or in `scratch`, which is large enough. Columns
// from n on are unspecified. Called by several threads.
using Columns = std::function<const float*(int64_t k0, int64_t depth, int64_t j0, float* scratch)>;
// Packs at each call; `view` must outlive the result.
Columns ColumnsOf(const MatrixView& view, int64_t n);
// Packs once, immediately.
Columns PackColumns(const MatrixView& view, int64_t k, int64_t n);

// Returns the number of threads, at most `threads`, that pays off for this many multiplications.
int WorthThreads(double multiplications, int threads);

// c [m, n] += left [m, k] right [k, n], where the rows of c are `stride` elements apart. T is float
// or double.
template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads, const Tiles<T>& tiles);
// The same with this processor's fastest tiles.
template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads);

}  // namespace mlc::engine
