// lib/ir/transpose.h - one tile of a transposition, in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mlc {

namespace detail {

template <class T>
struct Lanes {
  static constexpr int kCount = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));

  // Every second element from `a`, the others from `b`, of their lower or upper halves.
  template <size_t... I>
  static Vector Interleave(Vector a, Vector b, bool upper, std::index_sequence<I...>) {
    constexpr int kHalf = kCount / 2;
    return upper ? __builtin_shufflevector(a, b, (I % 2 * kCount + I / 2 + kHalf)...)
                 : __builtin_shufflevector(a, b, (I % 2 * kCount + I / 2)...);
  }

  // A square of kCount rows. Interleaving row i with row i + kCount / 2 moves the bits of an
  // element's place round by one; after as many rounds as the row's index has bits, row and column
  // have changed places.
  static void Transpose(const std::byte* in, int64_t in_row, std::byte* out, int64_t out_row) {
    constexpr auto kAll = std::make_index_sequence<kCount>();
    Vector rows[kCount], next[kCount];
    for (int i = 0; i < kCount; ++i) std::memcpy(&rows[i], in + i * in_row * sizeof(T), 16);
    for (int step = 1; step < kCount; step *= 2) {
      for (int i = 0; i < kCount / 2; ++i) {
        next[2 * i] = Interleave(rows[i], rows[i + kCount / 2], false, kAll);
        next[2 * i + 1] = Interleave(rows[i], rows[i + kCount / 2], true, kAll);
      }
      for (int i = 0; i < kCount; ++i) rows[i] = next[i];
    }
    for (int i = 0; i < kCount; ++i) std::memcpy(out + i * out_row * sizeof(T), &rows[i], 16);
  }
};

}  // namespace detail

// Element j * out_row + i of `out` is element i * in_row + j of `in`, for i < rows and j < columns.
// T has the elements' size; neither needs its alignment, and the two do not overlap.
template <class T>
void TransposeTile(const std::byte* in, int64_t in_row, int64_t rows, int64_t columns,
                   std::byte* out, int64_t out_row) {
  constexpr int64_t kLanes = detail::Lanes<T>::kCount, kSize = sizeof(T);
  int64_t square_rows = rows / kLanes * kLanes, square_columns = columns / kLanes * kLanes;
  for (int64_t j = 0; j < square_columns; j += kLanes)
    for (int64_t i = 0; i < square_rows; i += kLanes)
      detail::Lanes<T>::Transpose(in + (i * in_row + j) * kSize, in_row,
                                  out + (j * out_row + i) * kSize, out_row);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < square_columns ? square_rows : 0; i < rows; ++i)
      std::memcpy(out + (j * out_row + i) * kSize, in + (i * in_row + j) * kSize, kSize);
}

}  // namespace mlc
