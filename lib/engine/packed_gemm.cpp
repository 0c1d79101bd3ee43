#include "lib/engine/packed_gemm.h"

#include <algorithm>
#include <vector>

#include "lib/engine/omp_parallel.h"
#include "lib/support/threads.h"

namespace mlc::engine {

namespace {

constexpr int64_t kPanel = int64_t{1} << 18;  // floats

// Reads elements [i, i + rows) x [k, k + depth); the contiguous dimension stays contiguous.
void ReadPanel(const WeightView& view, int64_t i, int64_t rows, int64_t k, int64_t depth,
               float* out) {
  if (view.column == 1)
    for (int64_t r = 0; r < rows; ++r)
      view.weights->Read(view.first + (i + r) * view.row + k, depth, out + r * depth);
  else
    for (int64_t p = 0; p < depth; ++p)
      view.weights->Read(view.first + (k + p) * view.column + i, rows, out + p * rows);
}

}  // namespace

Columns ColumnsOf(const WeightView& view, int64_t n) {
  if (MatrixView there = view.InPlace(); there.data) return ColumnsOf(there, n);
  return [&view, n](int64_t k0, int64_t depth, int64_t j0, float* scratch) -> const float* {
    int64_t width = std::min<int64_t>(kTileColumns, n - j0);
    if (view.column == 1 && width == kTileColumns) {
      ReadPanel(view.Transposed(), j0, width, k0, depth, scratch);
      return scratch;
    }
    alignas(64) float rows[kTileDepth * kTileColumns];
    ReadPanel(view.Transposed(), j0, width, k0, depth, rows);
    MatrixView panel = view.row == 1 ? MatrixView{rows, 1, depth} : MatrixView{rows, width, 1};
    return ColumnsOf(panel, width)(0, depth, 0, scratch);
  };
}

template <class T>
void AddProduct(const WeightView& left, int64_t m, int64_t k, const Columns& right, int64_t n, T* c,
                int64_t stride, const Method& method) {
  if (MatrixView there = left.InPlace(); there.data)
    return AddProduct(PackedRows(there, m, k, method.threads), right, n, c, stride, method.threads,
                      method.tiles<T>());
  if (m == 0 || n == 0 || k == 0) return;
  // Use whole tiles, and a depth that preserves the order of the sums.
  const int64_t depth = std::min<int64_t>(k, kPanel / kTileRows / kTileDepth * kTileDepth),
                fitting = kPanel / depth / kTileRows * kTileRows, tiles = (m - 1) / kTileRows + 1;
  const int threads = WorthThreads(
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), method.threads);
  const int64_t rows = std::min(fitting, (tiles + threads - 1) / threads * kTileRows),
                panels = (m - 1) / rows + 1;
  ParallelFor(panels, threads, [&](int64_t index) {
    const int64_t i = index * rows, count = std::min(rows, m - i);
    std::vector<float> panel(static_cast<size_t>(count * depth));
    for (int64_t k0 = 0; k0 < k; k0 += depth) {
      const int64_t part = std::min(depth, k - k0);
      ReadPanel(left, i, count, k0, part, panel.data());
      MatrixView view =
          left.column == 1 ? MatrixView{panel.data(), part, 1} : MatrixView{panel.data(), 1, count};
      AddProduct(
          PackedRows(view, count, part),
          [&](int64_t at, int64_t some, int64_t j0, float* scratch) {
            return right(k0 + at, some, j0, scratch);
          },
          n, c + i * stride, stride, 1, method.tiles<T>());
    }
  });
}

template void AddProduct(const WeightView&, int64_t, int64_t, const Columns&, int64_t, float*,
                         int64_t, const Method&);
template void AddProduct(const WeightView&, int64_t, int64_t, const Columns&, int64_t, double*,
                         int64_t, const Method&);

namespace {

// For at most this many vectors, weights are multiplied without expanding them.
constexpr int64_t kFewest = 2;

// AddDots for blocks of 4-bit weights, if there is a loop for them.
bool AddBlockDots(const WeightView& left, int64_t m, int64_t k, const float* x, int64_t n, float* c,
                  int64_t row, int64_t column, int threads) {
  const PackedBlocks* blocks = left.weights->blocks();
  const auto dot = AvailableDecodingLoops().front().dot_blocks;
  if (!blocks || !dot || n > kFewest || k % kInBlock || left.first % kInBlock ||
      left.row % kInBlock)
    return false;
  std::vector<float> split(static_cast<size_t>(n * k));
  SplitPairs(x, n * k, split.data());
  OmpParallelForRanges(
      m, threads,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = 0; j < n; ++j)
            c[i * row + j * column] +=
                dot(*blocks, left.first + i * left.row, split.data() + j * k, k);
      },
      k * n / 8);
  return true;
}

}  // namespace

template <class T>
void AddDots(const WeightView& left, int64_t m, int64_t k, const float* x, int64_t n, T* c,
             int64_t row, int64_t column, const Method& method) {
  constexpr bool kExact = std::is_same_v<T, double>;
  if constexpr (!kExact)
    if (AddBlockDots(left, m, k, x, n, c, row, column, method.threads)) return;
  // The number of rows at a time, and of their elements, so that they fit into the cache.
  constexpr int64_t kRows = kExact ? kTileColumns : 1, kDepth = 4096 / kRows;
  // Reading a weight takes as long as this many multiplications.
  constexpr double kReading = 4;
  const int threads = WorthThreads(
      static_cast<double>(m) * static_cast<double>(k) * (static_cast<double>(n) + kReading),
      method.threads);
  const int64_t steps = (m + kRows - 1) / kRows;
  // Small blocks, so that little work is left for a thread that was preempted.
  const int64_t blocks = threads == 1 ? 1 : std::min<int64_t>(steps, int64_t{16} * threads);
  const float* there = left.InPlace().data;
  const std::vector<T> vectors(kExact ? x : nullptr, kExact ? x + n * k : nullptr);
  auto each = [&](int64_t block) {
    alignas(64) float weights[kRows * kDepth] = {};
    for (int64_t step = steps * block / blocks; step < steps * (block + 1) / blocks; ++step) {
      const int64_t i = step * kRows, rows = std::min(kRows, m - i);
      for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
        const int64_t depth = std::min(kDepth, k - k0);
        const bool read = !there || rows < kRows;
        for (int64_t r = 0; read && r < rows; ++r)
          left.weights->Read(left.first + (i + r) * left.row + k0, depth, weights + r * kDepth);
        const float* w = read ? weights : there + i * left.row + k0;
        for (int64_t j = 0; j < n; ++j) {
          T* to = c + i * row + j * column;
          if constexpr (kExact) {
            T sums[kRows] = {};
            for (int64_t r = 0; r < rows; ++r) sums[r] = to[r * row];
            method.loops->exact_dots(w, read ? kDepth : left.row, vectors.data() + j * k + k0,
                                     depth, sums);
            for (int64_t r = 0; r < rows; ++r) to[r * row] = sums[r];
          } else {
            *to += method.loops->dot(w, x + j * k + k0, depth);
          }
        }
      }
    }
  };
  if constexpr (kExact)
    ParallelFor(blocks, threads, each);
  else
    OmpParallelFor(blocks, threads, each);
}

template void AddDots(const WeightView&, int64_t, int64_t, const float*, int64_t, float*, int64_t,
                      int64_t, const Method&);
template void AddDots(const WeightView&, int64_t, int64_t, const float*, int64_t, double*, int64_t,
                      int64_t, const Method&);

}  // namespace mlc::engine
