// lib/engine/gemm_tile.h - the tile of gemm.h for vectors of any length. Whether a multiplication is
// fused with its addition is decided by how the file that includes this is compiled.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/engine/gemm.h"

namespace mlc {

// `Lanes` has vectors of the compilers' own, and how they lie in arrays. In structs, since template
// arguments lose attributes; typedefs, since clang ignores the alignment of an alias. They are local
// to the file, so that each has instances of its own. Every lane is an element of c.
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

// A tile with vectors of 16 bytes. SSE2 has 16 registers, which hold half a tile, NEON 32.
template <class Lanes, int kRows>
void AddTileIn16Bytes(const float* a, const float* b, int64_t depth, float* c, int64_t stride) {
#if defined(__x86_64__)
  constexpr int kVectors = 2;
#else
  constexpr int kVectors = 4;
#endif
  for (int j = 0; j < kTileColumns; j += 4 * kVectors)
    AddTile<Lanes, kRows, kVectors>(a, b + j, depth, c + j, stride);
}

}  // namespace mlc
