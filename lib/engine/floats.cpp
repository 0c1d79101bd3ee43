#include "lib/engine/floats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlc {

namespace {

#if defined(__x86_64__)
// clang 16 cannot ask for F16C by name; every processor with AVX2 has it.
const bool kHasF16c = __builtin_cpu_supports("avx2");

// They convert multiples of 8 and return how many they did.
__attribute__((target("avx,f16c"))) int64_t WidenF16c(const Half* in, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  return i;
}
__attribute__((target("avx,f16c"))) int64_t NarrowF16c(const float* in, Half* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
__attribute__((target("avx,f16c"))) int64_t RoundF16c(float* x, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(
        x + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT)));
  return i;
}
#endif

}  // namespace

void HalfToFloat(const Half* in, float* out, int64_t count) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (kHasF16c) i = WidenF16c(in, out, count);
#elif defined(__ARM_FP16_FORMAT_IEEE)
  for (const __fp16* half = reinterpret_cast<const __fp16*>(in); i < count; ++i) out[i] = half[i];
#endif
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

void FloatToHalf(const float* in, Half* out, int64_t count) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (kHasF16c) i = NarrowF16c(in, out, count);
#elif defined(__ARM_FP16_FORMAT_IEEE)
  for (__fp16* half = reinterpret_cast<__fp16*>(out); i < count; ++i)
    half[i] = static_cast<__fp16>(in[i]);
#endif
  for (; i < count; ++i) out[i] = Half(in[i]);
}

void RoundToHalf(float* x, int64_t count) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (kHasF16c) i = RoundF16c(x, count);
#endif
  for (; i < count; ++i) x[i] = static_cast<float>(Half(x[i]));
}

}  // namespace mlc
