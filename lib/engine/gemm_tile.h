// lib/engine/gemm_tile.h - the tile of gemm.h for vectors of any length. Whether a multiplication is
// fused with its addition is decided by how the file that includes this is compiled.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/engine/gemm.h"

namespace mlc {

// Of the file that includes this: instances that two files shared would be compiled as one of them is.
namespace {

// Vectors of the compilers' own, and how they lie in arrays. In structs, since template arguments lose
// attributes; typedefs, since clang ignores the alignment of an alias.
struct Lanes4 {
  typedef float Vector __attribute__((vector_size(16)));
  typedef float InArray __attribute__((vector_size(16), aligned(4), may_alias));
};
struct Lanes8 {
  typedef float Vector __attribute__((vector_size(32)));
  typedef float InArray __attribute__((vector_size(32), aligned(4), may_alias));
};

// Every lane is an element of c.
template <class Lanes, int kRows, int kVectors>
[[gnu::always_inline]] inline void AddTile(const float* a, const float* b, int64_t depth, float* c,
                                           int64_t stride) {
  using Vector = typename Lanes::Vector;
  using InArray = typename Lanes::InArray;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  Vector sums[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kTileColumns) {
    Vector right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = *reinterpret_cast<const InArray*>(b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] += a[r] * right[v];
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<InArray*>(c + r * stride + v * kLanes) += sums[r][v];
    }
}

// What every processor of the kind can run. SSE2 has 16 registers, which hold half a tile, NEON 32.
template <int kRows>
void BaselineTile(const float* a, const float* b, int64_t depth, float* c, int64_t stride) {
#if defined(__x86_64__)
  constexpr int kVectors = 2;
#else
  constexpr int kVectors = 4;
#endif
  for (int j = 0; j < kTileColumns; j += 4 * kVectors)
    AddTile<Lanes4, kRows, kVectors>(a, b + j, depth, c + j, stride);
}

}  // namespace

}  // namespace mlc
