// The innermost loops of products, for each vector length. This file is compiled with contraction
// to fused multiply-add: it does not change sums in double (gemm.h), and makes sums in float
// faster.
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/engine/gemm.h"

namespace mlc::engine {

namespace {

// Vector types of the compiler, in registers and in arrays. They are struct members, since template
// arguments lose attributes, and typedefs, since clang ignores the alignment of an alias.
template <class T, int kBytes>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T InArray __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(T));
};

// Every lane is an element of c. Sums in double continue from c; sums in float start at zero, which
// is more accurate.
template <class T, int kBytes, int kRows, int kVectors>
[[gnu::always_inline]] inline void AddTile(const T* a, const T* b, int64_t depth, T* c,
                                           int64_t stride) {
  using Vector = typename Lanes<T, kBytes>::Vector;
  using InArray = typename Lanes<T, kBytes>::InArray;
  constexpr int kLanes = Lanes<T, kBytes>::kCount;
  constexpr bool kGoesOn = std::is_same_v<T, double>;
  Vector sums[kRows][kVectors] = {};
  if constexpr (kGoesOn) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = *reinterpret_cast<const InArray*>(c + r * stride + v * kLanes);
  }
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
      auto& to = *reinterpret_cast<InArray*>(c + r * stride + v * kLanes);
      if constexpr (kGoesOn)
        to = sums[r][v];
      else
        to += sums[r][v];
    }
}

// Computes a tile in parts of as many vectors as fit into registers.
template <class T, int kBytes, int kRows, int kVectors>
[[gnu::always_inline]] inline void AddInParts(const T* a, const T* b, int64_t depth, T* c,
                                              int64_t stride) {
  constexpr int kColumns = kVectors * Lanes<T, kBytes>::kCount;
#pragma GCC unroll 4
  for (int j = 0; j < kTileColumns; j += kColumns)
    AddTile<T, kBytes, kRows, kVectors>(a, b + j, depth, c + j, stride);
}

// Uses four accumulators, since an addition waits for the previous one.
template <int kBytes>
[[gnu::always_inline]] inline float DotOf(const float* a, const float* b, int64_t count) {
  using Vector = typename Lanes<float, kBytes>::Vector;
  using InArray = typename Lanes<float, kBytes>::InArray;
  constexpr int kLanes = Lanes<float, kBytes>::kCount, kSums = 4;
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

// Sums sixteen rows at the same time: blocks of four rows and four elements are transposed in
// registers.
[[gnu::always_inline]] inline void AddExactDotsOf(const float* rows, int64_t stride,
                                                  const double* x, int64_t count, double* sums) {
  using Fp32View = Lanes<float, 16>;
  using Doubles = Lanes<double, 32>;
  constexpr int kGroups = kTileColumns / 4;
  Doubles::Vector all[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g)
    all[g] = *reinterpret_cast<const Doubles::InArray*>(sums + 4 * g);
  int64_t k = 0;
  for (; k + 4 <= count; k += 4)
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      Fp32View::Vector row[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r)
        row[r] = *reinterpret_cast<const Fp32View::InArray*>(rows + (4 * g + r) * stride + k);
      const Fp32View::Vector low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
                             high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
                             low2 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
                             high2 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      const Fp32View::Vector columns[4] = {__builtin_shufflevector(low, low2, 0, 1, 4, 5),
                                           __builtin_shufflevector(low, low2, 2, 3, 6, 7),
                                           __builtin_shufflevector(high, high2, 0, 1, 4, 5),
                                           __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        all[g] += x[k + i] * __builtin_convertvector(columns[i], Doubles::Vector);
    }
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) *reinterpret_cast<Doubles::InArray*>(sums + 4 * g) = all[g];
  for (; k < count; ++k)
    for (int r = 0; r < kTileColumns; ++r) sums[r] += x[k] * double{rows[r * stride + k]};
}

// The baseline of the architecture. SSE2 has 16 registers, NEON has 32.
#if defined(__x86_64__)
constexpr int kBaselineVectors = 2;
#else
constexpr int kBaselineVectors = 4;
#endif
template <class T, int kRows>
void BaselineTile(const T* a, const T* b, int64_t depth, T* c, int64_t stride) {
  AddInParts<T, 16, kRows, kBaselineVectors>(a, b, depth, c, stride);
}
float BaselineDot(const float* a, const float* b, int64_t count) { return DotOf<16>(a, b, count); }
void BaselineExactDots(const float* rows, int64_t stride, const double* x, int64_t count,
                       double* sums) {
  AddExactDotsOf(rows, stride, x, count, sums);
}

#if defined(__x86_64__)
template <class T, int kRows>
[[gnu::target("avx2,fma")]] void FmaTile(const T* a, const T* b, int64_t depth, T* c,
                                         int64_t stride) {
  AddInParts<T, 32, kRows, 2>(a, b, depth, c, stride);
}
[[gnu::target("avx2,fma")]] float FmaDot(const float* a, const float* b, int64_t count) {
  return DotOf<32>(a, b, count);
}
[[gnu::target("avx2,fma")]] void FmaExactDots(const float* rows, int64_t stride, const double* x,
                                              int64_t count, double* sums) {
  AddExactDotsOf(rows, stride, x, count, sums);
}
template <class T, int kRows>
[[gnu::target("avx512f")]] void Avx512Tile(const T* a, const T* b, int64_t depth, T* c,
                                           int64_t stride) {
  AddInParts<T, 64, kRows, kTileColumns / Lanes<T, 64>::kCount>(a, b, depth, c, stride);
}
[[gnu::target("avx512f")]] float Avx512Dot(const float* a, const float* b, int64_t count) {
  return DotOf<64>(a, b, count);
}
#endif

template <int... kRows>
std::vector<ProductLoops> MakeLoops(std::integer_sequence<int, kRows...>) {
  std::vector<ProductLoops> loops;
#if defined(__x86_64__)
  const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_fma && __builtin_cpu_supports("avx512f"))
    loops.push_back({{Avx512Tile<float, kRows + 1>...},
                     {Avx512Tile<double, kRows + 1>...},
                     Avx512Dot,
                     FmaExactDots});
  if (has_fma)
    loops.push_back(
        {{FmaTile<float, kRows + 1>...}, {FmaTile<double, kRows + 1>...}, FmaDot, FmaExactDots});
#endif
  loops.push_back({{BaselineTile<float, kRows + 1>...},
                   {BaselineTile<double, kRows + 1>...},
                   BaselineDot,
                   BaselineExactDots});
  return loops;
}

}  // namespace

std::span<const ProductLoops> AvailableLoops() {
  static const std::vector<ProductLoops> loops =
      MakeLoops(std::make_integer_sequence<int, kTileRows>());
  return loops;
}

}  // namespace mlc::engine
