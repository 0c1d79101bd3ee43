#include "lib/engine/gemm.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "lib/ir/transpose.h"
#include "lib/support/threads.h"

namespace mlc::engine {

namespace {

// Transposes: to[j * to_row + i] = from[i * row + j] for i < rows, j < columns. Works on squares of
// one cache line and reads each completely before the next, which may be mapped to the same cache
// set.
void Turn(const float* from, int64_t row, int64_t rows, int64_t columns, float* to,
          int64_t to_row) {
  constexpr int64_t kLine = 16, kRows = 4;
  for (int64_t j = 0; j < columns; j += kLine)
    for (int64_t i = 0; i < rows; i += kRows)
      TransposeTile<float>(reinterpret_cast<const std::byte*>(from + i * row + j), row,
                           std::min(kRows, rows - i), std::min(kLine, columns - j),
                           reinterpret_cast<std::byte*>(to + j * to_row + i), to_row);
}

// Copies rows [k0, k0 + depth) of columns [j0, j0 + width).
void CopyColumns(const MatrixView& view, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                 float* to) {
  const float* from = view.data + k0 * view.row + j0 * view.column;
  if (view.row == 1 && view.column != 1)
    return Turn(from, view.column, width, depth, to, kTileColumns);
  for (int64_t k = 0; k < depth; ++k, from += view.row, to += kTileColumns)
    if (view.column == 1)
      std::copy_n(from, width, to);
    else if (width == kTileColumns)  // of constant length
      for (int64_t j = 0; j < kTileColumns; ++j) to[j] = from[j * view.column];
    else
      for (int64_t j = 0; j < width; ++j) to[j] = from[j * view.column];
}

// Copies columns [0, depth) of kRows rows, one column after the other.
template <int kRows>
float* CopyRows(const float* from, const MatrixView& view, int64_t depth, float* to) {
  if (view.column == 1 && kRows > 1) {
    Turn(from, view.row, kRows, depth, to, kRows);
    return to + depth * kRows;
  }
  for (int64_t p = 0; p < depth; ++p, from += view.column)
    for (int r = 0; r < kRows; ++r) *to++ = from[r * view.row];
  return to;
}

template <int... kRows>
constexpr auto MakeCopies(std::integer_sequence<int, kRows...>) {
  return std::array{CopyRows<kRows + 1>...};
}

// Returns the numbers in the accumulator's type: in place or in `copy`.
const float* As(const float* from, int64_t, float*) { return from; }
const double* As(const float* from, int64_t count, double* copy) {
  std::copy_n(from, count, copy);
  return copy;
}

}  // namespace

int WorthThreads(double multiplications, int threads) {
  constexpr double kWorthThread = 1 << 21;  // takes ten times as long as starting a thread
  return static_cast<int>(
      std::clamp(multiplications / kWorthThread, 1.0, static_cast<double>(std::max(threads, 1))));
}

PackedRows::PackedRows(const MatrixView& view, int64_t m, int64_t k, int threads)
    : m_(m), k_(k), data_(std::make_unique_for_overwrite<float[]>(m * k)) {
  static constexpr auto kCopies = MakeCopies(std::make_integer_sequence<int, kTileRows>());
  constexpr double kMultiplications = 16;  // in the time that copying one element takes
  threads = WorthThreads(kMultiplications * static_cast<double>(m * k), threads);
  ParallelFor((k + kTileDepth - 1) / kTileDepth, threads, [&](int64_t block) {
    int64_t k0 = block * kTileDepth, depth = std::min<int64_t>(kTileDepth, k - k0);
    float* to = data_.get() + k0 * m;
    for (int64_t i = 0; i < m; i += kTileRows)
      to = kCopies[std::min<int64_t>(kTileRows, m - i) - 1](
          view.data + i * view.row + k0 * view.column, view, depth, to);
  });
}

const float* PackedRows::At(int64_t i, int64_t k0) const {
  return data_.get() + k0 * m_ + i * std::min<int64_t>(kTileDepth, k_ - k0);
}

Columns ColumnsOf(const MatrixView& view, int64_t n) {
  return [view, n](int64_t k0, int64_t depth, int64_t j0, float* scratch) -> const float* {
    CopyColumns(view, k0, depth, j0, std::min<int64_t>(kTileColumns, n - j0), scratch);
    return scratch;
  };
}

Columns PackColumns(const MatrixView& view, int64_t k, int64_t n) {
  auto packed = std::make_shared<std::vector<float>>((n + kTileColumns - 1) / kTileColumns *
                                                     kTileColumns * k);
  for (int64_t j0 = 0; j0 < n; j0 += kTileColumns)
    CopyColumns(view, 0, k, j0, std::min<int64_t>(kTileColumns, n - j0), packed->data() + j0 * k);
  return [packed, k](int64_t k0, int64_t, int64_t j0, float*) -> const float* {
    return packed->data() + j0 * k + k0 * kTileColumns;
  };
}

template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads, const Tiles<T>& tiles) {
  // In double, half as many rows fit into the cache.
  constexpr int64_t kDepth = kTileDepth * sizeof(float) / sizeof(T);
  int64_t m = left.m(), k = left.k();
  if (m == 0 || n == 0 || k == 0) return;
  threads = WorthThreads(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
                         threads);
  // Blocks of c, several per thread. Columns are divided first, because every block of rows packs
  // its columns again.
  auto blocks_of = [](int64_t tiles, int64_t wanted) {
    int64_t size = (tiles + wanted - 1) / wanted;
    return std::pair((tiles + size - 1) / size, size);
  };
  int64_t wanted = threads == 1 ? 1 : 4 * threads;
  auto [across, width] =
      blocks_of((n + kTileColumns - 1) / kTileColumns, wanted);  // in tiles of columns
  auto [down, height] = blocks_of((m + kTileRows - 1) / kTileRows, (wanted + across - 1) / across);
  auto block = [&, across = across, width = width, height = height](int64_t index) {
    alignas(64) float scratch[kTileDepth * kTileColumns];
    alignas(64) T edge[kTileRows * kTileColumns], columns_as_t[kDepth * kTileColumns],
        rows_as_t[kDepth * kTileRows];
    int64_t first_row = index / across * height * kTileRows,
            end_row = std::min(m, first_row + height * kTileRows),
            first_column = index % across * width * kTileColumns,
            end_column = std::min(n, first_column + width * kTileColumns);
    for (int64_t k0 = 0; k0 < k; k0 += kTileDepth)
      for (int64_t j = first_column; j < end_column; j += kTileColumns) {
        const int64_t laid = std::min<int64_t>(kTileDepth, k - k0),
                      columns = std::min<int64_t>(kTileColumns, n - j);
        if (columns < kTileColumns) std::fill_n(scratch, laid * kTileColumns, 0.0f);
        const float* of_columns = right(k0, laid, j, scratch);
        for (int64_t p = 0; p < laid; p += kDepth) {
          const int64_t depth = std::min(kDepth, laid - p);
          const T* b = As(of_columns + p * kTileColumns, depth * kTileColumns, columns_as_t);
          for (int64_t i = first_row; i < end_row; i += kTileRows) {
            const int64_t rows = std::min<int64_t>(kTileRows, m - i);
            const T* a = As(left.At(i, k0) + p * rows, depth * rows, rows_as_t);
            T* to = c + i * stride + j;
            Tile<T> tile = tiles[rows - 1];
            if (columns == kTileColumns) {
              tile(a, b, depth, to, stride);
              continue;
            }
            for (int64_t r = 0; r < rows; ++r)
              std::copy_n(to + r * stride, columns, edge + r * kTileColumns);
            tile(a, b, depth, edge, kTileColumns);
            for (int64_t r = 0; r < rows; ++r)
              std::copy_n(edge + r * kTileColumns, columns, to + r * stride);
          }
        }
      }
  };
  ParallelFor(across * down, threads, block);
}

template <class T>
void AddProduct(const PackedRows& left, const Columns& right, int64_t n, T* c, int64_t stride,
                int threads) {
  const ProductLoops& loops = AvailableLoops().front();
  if constexpr (std::is_same_v<T, float>)
    AddProduct(left, right, n, c, stride, threads, loops.tiles);
  else
    AddProduct(left, right, n, c, stride, threads, loops.exact);
}

template void AddProduct(const PackedRows&, const Columns&, int64_t, float*, int64_t, int,
                         const Tiles<float>&);
template void AddProduct(const PackedRows&, const Columns&, int64_t, double*, int64_t, int,
                         const Tiles<double>&);
template void AddProduct(const PackedRows&, const Columns&, int64_t, float*, int64_t, int);
template void AddProduct(const PackedRows&, const Columns&, int64_t, double*, int64_t, int);

}  // namespace mlc::engine
