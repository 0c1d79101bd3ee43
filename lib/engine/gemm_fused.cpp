// The tiles of gemm.h with fused multiplications and additions: this file is compiled with
// contraction.
#include <vector>

#include "lib/engine/gemm_tile.h"

namespace mlc {

namespace {

struct Lanes16 {
  typedef float Vector __attribute__((vector_size(64)));
  typedef float InArray __attribute__((vector_size(64), aligned(4), may_alias));
};

// Four sums at a time, since an addition waits for the one before.
template <class Lanes>
[[gnu::always_inline]] inline float DotOf(const float* a, const float* b, int64_t count) {
  using Vector = typename Lanes::Vector;
  using InArray = typename Lanes::InArray;
  constexpr int kLanes = sizeof(Vector) / sizeof(float), kSums = 4;
  Vector sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s)
      sums[s] += *reinterpret_cast<const InArray*>(a + i + s * kLanes) *
                 *reinterpret_cast<const InArray*>(b + i + s * kLanes);
  Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += all[lane];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

float BaselineDot(const float* a, const float* b, int64_t count) {
  return DotOf<Lanes4>(a, b, count);
}

#if defined(__x86_64__)
template <int kRows>
[[gnu::target("avx2,fma")]] void FmaTile(const float* a, const float* b, int64_t depth, float* c,
                                         int64_t stride) {
  AddTile<Lanes8, kRows, 2>(a, b, depth, c, stride);
}
[[gnu::target("avx2,fma")]] float FmaDot(const float* a, const float* b, int64_t count) {
  return DotOf<Lanes8>(a, b, count);
}
template <int kRows>
[[gnu::target("avx512f")]] void Avx512Tile(const float* a, const float* b, int64_t depth, float* c,
                                           int64_t stride) {
  AddTile<Lanes16, kRows, 1>(a, b, depth, c, stride);
}
[[gnu::target("avx512f")]] float Avx512Dot(const float* a, const float* b, int64_t count) {
  return DotOf<Lanes16>(a, b, count);
}
#endif

template <int... kRows>
std::vector<FusedLoops> MakeLoops(std::integer_sequence<int, kRows...>) {
  std::vector<FusedLoops> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) loops.push_back({{Avx512Tile<kRows + 1>...}, Avx512Dot});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back({{FmaTile<kRows + 1>...}, FmaDot});
#endif
  loops.push_back({{BaselineTile<kRows + 1>...}, BaselineDot});
  return loops;
}

}  // namespace

std::span<const FusedLoops> AvailableFusedLoops() {
  static const std::vector<FusedLoops> loops =
      MakeLoops(std::make_integer_sequence<int, kTileRows>());
  return loops;
}

}  // namespace mlc
