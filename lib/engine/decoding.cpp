#include "lib/engine/decoding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/engine/floats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlc {

namespace {

[[gnu::always_inline]] inline void SplitOf(const uint8_t* in, int64_t pairs, uint8_t sign,
                                           uint8_t* out) {
  for (int64_t i = 0; i < pairs; ++i) {
    out[2 * i] = static_cast<uint8_t>(((in[i] & 15) ^ sign) - sign);
    out[2 * i + 1] = static_cast<uint8_t>((in[i] >> 4 ^ sign) - sign);
  }
}
template <class T>
[[gnu::always_inline]] inline void WidenOf(const T* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}
template <class T>
void BaselineScale(const T* in, const Scaling& how, int64_t count, float* out) {
  int64_t used = how.used;
  for (int64_t i = 0, c = 0; i < count; ++c, used = 0) {
    const int64_t end = std::min(count, i + how.block - used);
    const float scale = how.scale[c], offset = how.offset[c];
    for (; i < end; ++i) out[i] = (static_cast<float>(in[i]) - offset) * scale;
  }
  if (how.rounds) RoundToHalf(out, count);
}
constexpr DecodingLoops kBaseline = {
    [](const uint8_t* in, int64_t pairs, uint8_t sign, uint8_t* out) {
      SplitOf(in, pairs, sign, out);
    },
    [](const int8_t* in, int64_t n, float* out) { WidenOf(in, n, out); },
    [](const uint8_t* in, int64_t n, float* out) { WidenOf(in, n, out); },
    BaselineScale<int8_t>,
    BaselineScale<uint8_t>,
    BaselineScale<float>,
    nullptr};

#if defined(__x86_64__)
[[gnu::target("avx2")]] void Avx2Split(const uint8_t* in, int64_t pairs, uint8_t sign,
                                       uint8_t* out) {
  SplitOf(in, pairs, sign, out);
}
template <class T>
[[gnu::target("avx2")]] void Avx2Widen(const T* in, int64_t n, float* out) {
  WidenOf(in, n, out);
}
[[gnu::target("avx2")]] inline __m256 Load8(const float* in) { return _mm256_loadu_ps(in); }
[[gnu::target("avx2")]] inline __m256 Load8(const int8_t* in) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
}
[[gnu::target("avx2")]] inline __m256 Load8(const uint8_t* in) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
}
[[gnu::target("avx2,f16c")]] inline __m256 Scale8(__m256 x, __m256 offset, __m256 scale,
                                                  bool rounds) {
  x = _mm256_mul_ps(_mm256_sub_ps(x, offset), scale);
  return rounds ? _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)) : x;
}
// All of it in one pass over the elements.
template <class T>
[[gnu::target("avx2,f16c")]] void Avx2Scale(const T* in, const Scaling& how, int64_t count,
                                            float* out) {
  int64_t used = how.used;
  const bool each = how.block == 1;
  for (int64_t i = 0, c = 0; i < count; used = 0) {
    int64_t n = each ? count : std::min(count - i, how.block - used);
    const float *scale = how.scale + c, *offset = how.offset + c;
    __m256 s = _mm256_set1_ps(*scale), o = _mm256_set1_ps(*offset);
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
      if (each) s = _mm256_loadu_ps(scale + k), o = _mm256_loadu_ps(offset + k);
      _mm256_storeu_ps(out + i + k, Scale8(Load8(in + i + k), o, s, how.rounds));
    }
    for (; k < n; ++k) {
      float x = (static_cast<float>(in[i + k]) - offset[each ? k : 0]) * scale[each ? k : 0];
      out[i + k] = how.rounds ? static_cast<float>(Half(x)) : x;
    }
    i += n;
    ++c;
  }
}

constexpr DecodingLoops kAvx2 = {Avx2Split,
                                 Avx2Widen<int8_t>,
                                 Avx2Widen<uint8_t>,
                                 Avx2Scale<int8_t>,
                                 Avx2Scale<uint8_t>,
                                 Avx2Scale<float>,
                                 nullptr};

// Intrinsics with masks of ones: GCC 12 warns of its own headers without.
constexpr __mmask16 kAll = 0xffff;
// What the elements of eight bytes, the lower of each first, choose of the levels.
[[gnu::target("avx512f")]] inline __m512 Select16(uint64_t bytes, __m512 levels) {
  constexpr __mmask8 kQuads = 0xff;
  const __m512i lower = _mm512_maskz_cvtepu8_epi64(kQuads,
                                                   _mm_cvtsi64_si128(static_cast<int64_t>(bytes))),
                // The lowest four bits of each index count.
      both = _mm512_or_si512(lower, _mm512_maskz_slli_epi64(kQuads, lower, 28));
  return _mm512_maskz_permutexvar_ps(kAll, both, levels);
}
// The same of n < 16 elements from number `first` on, the only one where that is odd.
[[gnu::target("avx512f")]] void SelectSome(const uint8_t* in, int64_t first, int64_t n,
                                           __m512 levels, float* out) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, in + (first >> 1), static_cast<size_t>(n + 1) / 2);
  _mm512_mask_storeu_ps(out, static_cast<__mmask16>((1 << n) - 1),
                        Select16(bytes >> (first & 1) * 4, levels));
}
[[gnu::target("avx512f")]] void Avx512ScaleLevels(const uint8_t* in, int64_t first,
                                                  const Levels& levels, const Scaling& how,
                                                  int64_t count, float* out) {
  const auto [scales, offsets, block, used, rounds] = how;
  const __m512 unscaled = _mm512_loadu_ps(levels.data());
  int64_t left = block - used;
  for (int64_t i = 0, c = 0; i < count; ++c, left = block) {
    __m512 scaled = _mm512_mul_ps(_mm512_sub_ps(unscaled, _mm512_set1_ps(offsets[c])),
                                  _mm512_set1_ps(scales[c]));
    if (rounds)
      scaled = _mm512_maskz_cvtph_ps(
          kAll, _mm512_maskz_cvtps_ph(kAll, scaled, _MM_FROUND_TO_NEAREST_INT));
    const int64_t end = std::min(count, i + left);
    if ((first + i) & 1) SelectSome(in, first + i, 1, scaled, out + i), ++i;
    for (; i + 16 <= end; i += 16) {
      uint64_t bytes;
      std::memcpy(&bytes, in + ((first + i) >> 1), sizeof(bytes));
      _mm512_storeu_ps(out + i, Select16(bytes, scaled));
    }
    if (i < end) SelectSome(in, first + i, end - i, scaled, out + i);
    i = end;
  }
}
#endif

std::vector<DecodingLoops> MakeLoops() {
  std::vector<DecodingLoops> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    loops.push_back(kAvx2);
    loops.back().scale_levels = Avx512ScaleLevels;
  }
  if (__builtin_cpu_supports("avx2")) loops.push_back(kAvx2);
#endif
  loops.push_back(kBaseline);
  return loops;
}

}  // namespace

std::span<const DecodingLoops> AvailableDecodingLoops() {
  static const std::vector<DecodingLoops> loops = MakeLoops();
  return loops;
}

}  // namespace mlc
