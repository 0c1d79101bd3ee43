#include "lib/engine/fp32_view.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlc::engine {

namespace {

// Each function converts as many leading elements as it supports and returns their number.
struct Conversions {
  int64_t (*widen)(const Half* in, float* out, int64_t count);
  int64_t (*narrow)(const float* in, Half* out, int64_t count);
  int64_t (*round)(const float* in, float* out, int64_t count);
};

#if defined(__x86_64__)
// Convert multiples of 8 elements.
[[gnu::target("avx,f16c")]] int64_t WidenF16c(const Half* in, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  return i;
}
[[gnu::target("avx,f16c")]] int64_t NarrowF16c(const float* in, Half* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
[[gnu::target("avx,f16c")]] int64_t RoundF16c(const float* in, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(in + i),
                                                              _MM_FROUND_TO_NEAREST_INT)));
  return i;
}
// Convert multiples of 16 elements, with a full mask: GCC 12 warns about its own headers for the
// unmasked intrinsics.
constexpr __mmask16 kAll = 0xffff;
[[gnu::target("avx512f")]] int64_t WidenAvx512(const Half* in, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(
        out + i,
        _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  return i;
}
[[gnu::target("avx512f")]] int64_t NarrowAvx512(const float* in, Half* out, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + i),
        _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
[[gnu::target("avx512f")]] int64_t RoundAvx512(const float* in, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(
        out + i, _mm512_maskz_cvtph_ps(kAll, _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(in + i),
                                                                   _MM_FROUND_TO_NEAREST_INT)));
  return i;
}
#elif defined(__ARM_FP16_FORMAT_IEEE)
int64_t WidenArm(const Half* in, float* out, int64_t count) {
  const auto* half = reinterpret_cast<const __fp16*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = half[i];
  return count;
}
int64_t NarrowArm(const float* in, Half* out, int64_t count) {
  auto* half = reinterpret_cast<__fp16*>(out);
  for (int64_t i = 0; i < count; ++i) half[i] = static_cast<__fp16>(in[i]);
  return count;
}
int64_t RoundArm(const float* in, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<__fp16>(in[i]);
  return count;
}
#endif

const Conversions& Fastest() {
  static const Conversions fastest = []() -> Conversions {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return {WidenAvx512, NarrowAvx512, RoundAvx512};
    // clang 16 cannot test for F16C; every processor with AVX2 has it.
    if (__builtin_cpu_supports("avx2")) return {WidenF16c, NarrowF16c, RoundF16c};
#elif defined(__ARM_FP16_FORMAT_IEEE)
    return {WidenArm, NarrowArm, RoundArm};
#endif
    auto none = [](const auto*, auto*, int64_t) -> int64_t { return 0; };
    return {none, none, none};
  }();
  return fastest;
}

}  // namespace

void HalfToFloat(const Half* in, float* out, int64_t count) {
  for (int64_t i = Fastest().widen(in, out, count); i < count; ++i)
    out[i] = static_cast<float>(in[i]);
}

void FloatToHalf(const float* in, Half* out, int64_t count) {
  for (int64_t i = Fastest().narrow(in, out, count); i < count; ++i) out[i] = Half(in[i]);
}

void RoundToHalf(const float* in, float* out, int64_t count) {
  for (int64_t i = Fastest().round(in, out, count); i < count; ++i)
    out[i] = static_cast<float>(Half(in[i]));
}

}  // namespace mlc::engine
