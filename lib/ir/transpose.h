// lib/ir/transpose.h - transposes one tile in vector registers.
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

  // Interleaves the lower (or upper) halves of `a` and `b`.
  template <size_t... I>
  static Vector Low(Vector a, Vector b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 * kCount + I / 2)...);
  }
  template <size_t... I>
  static Vector High(Vector a, Vector b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 * kCount + I / 2 + kCount / 2)...);
  }

  // Transposes a square of kCount rows. Interleaving row i with row i + kCount / 2 rotates the bits
  // of an element's position by one; after as many rounds as a row index has bits, row and column
  // are exchanged. Written without loops to keep the rows in registers.
  template <size_t... I>
  static void Square(const std::byte* in, int64_t in_row, std::byte* out, int64_t out_row,
                     std::index_sequence<I...>) {
    constexpr auto kAll = std::make_index_sequence<kCount>();
    constexpr size_t kHalf = kCount / 2;
    Vector rows[kCount], next[kCount];
    (std::memcpy(&rows[I], in + I * in_row * sizeof(T), 16), ...);
    auto round = [&] {
      ((next[I] = I % 2 ? High(rows[I / 2], rows[I / 2 + kHalf], kAll)
                        : Low(rows[I / 2], rows[I / 2 + kHalf], kAll)),
       ...);
      ((rows[I] = next[I]), ...);
    };
    round();
    if constexpr (kCount > 2) round();
    if constexpr (kCount > 4) round();
    if constexpr (kCount > 8) round();
    (std::memcpy(out + I * out_row * sizeof(T), &rows[I], 16), ...);
  }
  static void Transpose(const std::byte* in, int64_t in_row, std::byte* out, int64_t out_row) {
    Square(in, in_row, out, out_row, std::make_index_sequence<kCount>());
  }
};

}  // namespace detail

// Element j * out_row + i of `out` becomes element i * in_row + j of `in`, for i < rows and j <
// columns. T has the size of an element; neither array has to be aligned, and they must not
// overlap.
template <class T>
void TransposeTile(const std::byte* in, int64_t in_row, int64_t rows, int64_t columns,
                   std::byte* out, int64_t out_row) {
  constexpr int64_t kLanes = detail::Lanes<T>::kCount, kSize = sizeof(T);
  int64_t square_rows = rows / kLanes * kLanes, square_columns = columns / kLanes * kLanes;
  for (int64_t j = 0; j < square_columns; j += kLanes)
    for (int64_t i = 0; i < square_rows; i += kLanes)
      detail::Lanes<T>::Transpose(in + (i * in_row + j) * kSize, in_row,
                                  out + (j * out_row + i) * kSize, out_row);
  auto rest = [&](int64_t first_row, int64_t first_column, int64_t last_column) {
    for (int64_t j = first_column; j < last_column; ++j)
      for (int64_t i = first_row; i < rows; ++i)
        std::memcpy(out + (j * out_row + i) * kSize, in + (i * in_row + j) * kSize, kSize);
  };
  if (square_rows < rows) rest(square_rows, 0, square_columns);
  rest(0, square_columns, columns);
}

}  // namespace mlc
