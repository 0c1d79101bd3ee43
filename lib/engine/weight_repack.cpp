#include "lib/engine/weight_repack.h"

#include <algorithm>

#include "lib/engine/omp_parallel.h"

namespace mlc::engine {

namespace {

constexpr int64_t kDepth = 512, kSide = 8,
                  kTogether = 16;  // rows that are read together fit into the L1 cache

struct Lanes8 {
  typedef float Vector __attribute__((vector_size(32)));
  typedef float InArray __attribute__((vector_size(32), aligned(4), may_alias));
};

// Transposes eight rows of `in`, which are `apart` elements apart: element j of row i goes to
// out[columns[j] + i].
[[gnu::always_inline]] inline void TurnOf(const float* in, int64_t apart, const int32_t* columns,
                                          int64_t depth, float* out) {
  using Vector = Lanes8::Vector;
  using InArray = Lanes8::InArray;
  int64_t j = 0;
  for (; j + kSide <= depth; j += kSide, in += kSide) {
    Vector a[kSide], b[kSide];
#pragma GCC unroll 8
    for (int i = 0; i < kSide; ++i) a[i] = *reinterpret_cast<const InArray*>(in + i * apart);
#pragma GCC unroll 4
    for (int i = 0; i < kSide; i += 2) {
      b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < kSide; i += 4)
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 2 * k + 1] =
            __builtin_shufflevector(b[i + k], b[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
#pragma GCC unroll 4
    for (int i = 0; i < kSide / 2; ++i) {
      *reinterpret_cast<InArray*>(out + columns[j + i]) =
          __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      *reinterpret_cast<InArray*>(out + columns[j + i + 4]) =
          __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  }
  for (; j < depth; ++j, ++in)
    for (int i = 0; i < kSide; ++i) out[columns[j] + i] = in[i * apart];
}

using Turn = void (*)(const float* in, int64_t apart, const int32_t* columns, int64_t depth,
                      float* out);
void BaselineTurn(const float* in, int64_t apart, const int32_t* columns, int64_t depth,
                  float* out) {
  TurnOf(in, apart, columns, depth, out);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void Avx2Turn(const float* in, int64_t apart, const int32_t* columns,
                                      int64_t depth, float* out) {
  TurnOf(in, apart, columns, depth, out);
}
#endif
Turn Fastest() {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return Avx2Turn;
#endif
  return BaselineTurn;
}

// Returns the number of elements from i on with consecutive positions.
int64_t Run(const std::vector<int32_t>& places, int64_t i, int64_t end) {
  int64_t run = i < end ? 1 : 0;
  while (i + run < end && places[i + run] == places[i] + run) ++run;
  return run;
}

}  // namespace

void RepackWeights(const Weights& weights, int64_t first, int64_t row, const RepackPlan& placement,
                   int threads, float* out) {
  const auto& [rows, columns, size] = placement;
  const int64_t height = std::ssize(rows), width = std::ssize(columns),
                down = (height + kTogether - 1) / kTogether, across = (width + kDepth - 1) / kDepth;
  if (size != height * width) std::fill_n(out, size, 0.0f);
  auto block = [&](int64_t index) {
    alignas(64) float in[kTogether * kDepth];
    const int64_t i0 = index / across * kTogether, j0 = index % across * kDepth,
                  i1 = std::min(height, i0 + kTogether), depth = std::min(kDepth, width - j0);
    const int64_t apart = row == width && across == 1 ? row : kDepth;
    if (apart == row)
      weights.Read(first + i0 * row, (i1 - i0) * row, in);
    else
      for (int64_t i = i0; i < i1; ++i)
        weights.Read(first + i * row + j0, depth, in + (i - i0) * apart);
    int64_t i = i0;
    for (; Run(rows, i, std::min(i1, i + kSide)) == kSide; i += kSide)
      Fastest()(in + (i - i0) * apart, apart, columns.data() + j0, depth, out + rows[i]);
    for (int64_t j = 0, run = 0; j < depth && i < i1; j += run) {
      run = Run(columns, j0 + j, j0 + depth);
      for (int64_t k = i; k < i1; ++k)
        std::copy_n(in + (k - i0) * apart + j, run, out + rows[k] + columns[j0 + j]);
    }
  };
  OmpParallelFor(down * across, height * width < kParallelGrain ? 1 : threads, block);
}

}  // namespace mlc::engine
