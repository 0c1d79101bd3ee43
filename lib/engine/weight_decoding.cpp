#include "lib/engine/weight_decoding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/engine/fp32_view.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mlc::engine {

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
    nullptr,
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
// Scales the elements in one pass.
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

// Iterates over the elements that share a scale; n is 0 after the last.
struct Cell {
  const uint8_t* elements;
  const Half* scale;
  int64_t block, left, n;

  [[gnu::always_inline]] Cell(const PackedBlocks& blocks, int64_t first, int64_t count)
      : elements(blocks.elements + first / 2),
        scale(blocks.scales + first / blocks.block),
        block(blocks.block),
        left(count),
        n(std::min(count, block - first % block)) {}
  [[gnu::always_inline]] void Next() {
    elements += n / 2;
    ++scale;
    left -= n;
    n = std::min(left, block);
  }
};
[[gnu::target("avx2"), gnu::always_inline]] inline float SumOf(__m256 x) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
// Adds the products of 16 elements of x with values that `index` selects from 16 halves, whose low
// and high bytes are in separate registers.
[[gnu::target("avx2,fma,f16c")]] inline void AddHalves(__m128i low, __m128i high, __m128i index,
                                                       const float* x, __m256& sum) {
  const __m128i lower = _mm_shuffle_epi8(low, index), upper = _mm_shuffle_epi8(high, index);
  sum = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_unpacklo_epi8(lower, upper)), _mm256_loadu_ps(x), sum);
  sum = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_unpackhi_epi8(lower, upper)), _mm256_loadu_ps(x + 8),
                        sum);
}
[[gnu::target("avx2,fma")]] inline void AddBytes(__m128i bytes, const float* x, __m256& sum) {
  sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), _mm256_loadu_ps(x), sum);
  sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))),
                        _mm256_loadu_ps(x + 8), sum);
}
[[gnu::target("avx2,fma,f16c")]] float Avx2DotBlocks(const PackedBlocks& blocks, int64_t first,
                                                     const float* x, int64_t count) {
  const __m128i nibble = _mm_set1_epi8(15), sign = _mm_set1_epi8(blocks.has_sign ? 8 : 0),
                byte = _mm_set1_epi16(255);
  const float* levels = (blocks.has_sign ? kSignedLevels : kUnsignedLevels).data();
  const __m256 lower_levels = _mm256_loadu_ps(levels), upper_levels = _mm256_loadu_ps(levels + 8);
  __m256 even = _mm256_setzero_ps(), odd = even;
  for (Cell cell(blocks, first, count); cell.n > 0; cell.Next()) {
    const __m256 scales = _mm256_set1_ps(_cvtsh_ss(std::bit_cast<uint16_t>(*cell.scale)));
    const auto* at = reinterpret_cast<const __m128i*>(cell.elements);
    if (blocks.rounds) {
      // The low and high bytes of the scaled levels, rounded to fp16.
      const __m128i a = _mm256_cvtps_ph(_mm256_mul_ps(lower_levels, scales),
                                        _MM_FROUND_TO_NEAREST_INT),
                    b = _mm256_cvtps_ph(_mm256_mul_ps(upper_levels, scales),
                                        _MM_FROUND_TO_NEAREST_INT),
                    lower = _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte)),
                    upper = _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
      for (int64_t i = 0; i < cell.n; i += kInBlock, x += kInBlock) {
        const __m128i both = _mm_loadu_si128(at++);
        AddHalves(lower, upper, _mm_and_si128(both, nibble), x, even);
        AddHalves(lower, upper, _mm_and_si128(_mm_srli_epi16(both, 4), nibble), x + kInBlock / 2,
                  odd);
      }
    } else {
      __m256 a = _mm256_setzero_ps(), b = a;
      for (int64_t i = 0; i < cell.n; i += kInBlock, x += kInBlock) {
        const __m128i both = _mm_loadu_si128(at++), low = _mm_and_si128(both, nibble),
                      high = _mm_and_si128(_mm_srli_epi16(both, 4), nibble);
        AddBytes(_mm_sub_epi8(_mm_xor_si128(low, sign), sign), x, a);
        AddBytes(_mm_sub_epi8(_mm_xor_si128(high, sign), sign), x + kInBlock / 2, b);
      }
      even = _mm256_fmadd_ps(a, scales, even), odd = _mm256_fmadd_ps(b, scales, odd);
    }
  }
  return SumOf(_mm256_add_ps(even, odd));
}

constexpr DecodingLoops kAvx2 = {Avx2Split,         Avx2Widen<int8_t>,  Avx2Widen<uint8_t>,
                                 Avx2Scale<int8_t>, Avx2Scale<uint8_t>, Avx2Scale<float>,
                                 nullptr,           Avx2DotBlocks};

// A full mask: GCC 12 warns about its own headers for the unmasked intrinsics.
constexpr __mmask16 kAll = 0xffff;
// Returns the levels of the 16 elements in eight bytes, the low nibble first.
[[gnu::target("avx512f")]] inline __m512 Select16(uint64_t bytes, __m512 levels) {
  constexpr __mmask8 kQuads = 0xff;
  const __m512i lower = _mm512_maskz_cvtepu8_epi64(kQuads,
                                                   _mm_cvtsi64_si128(static_cast<int64_t>(bytes))),
                // Only the lowest four bits of each index are used.
      both = _mm512_or_si512(lower, _mm512_maskz_slli_epi64(kQuads, lower, 28));
  return _mm512_maskz_permutexvar_ps(kAll, both, levels);
}
// The same for n < 16 elements from element `first` on; n is 1 if `first` is odd.
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
// The levels multiplied by scales from 1 to 2 and rounded to fp16, by the ten fraction bits of the
// scale; and powers of two, by its sign and exponent bits. The product of both is correctly
// rounded, unless it is subnormal or too large.
constexpr int kFraction = 10, kFractions = 1 << kFraction;
struct RoundedLevels {
  alignas(64) std::array<Levels, kFractions> levels;
  std::array<float, 64> powers = {};
  std::array<bool, 64> serves = {};  // whether the product is correctly rounded

  explicit RoundedLevels(const Levels& exact) {
    for (int i = 0; i < kFractions; ++i)
      for (size_t k = 0; k < exact.size(); ++k)
        levels[i][k] =
            static_cast<float>(Half(exact[k] * (1 + static_cast<float>(i) / kFractions)));
    constexpr int kLargest = 26, kOne = 15, kSign = 32;
    for (int i = 1; i <= kLargest; ++i) {
      powers[i] = std::ldexp(1.0f, i - kOne);
      powers[i + kSign] = -powers[i];
      serves[i] = serves[i + kSign] = true;
    }
  }
  static const RoundedLevels& Of(bool has_sign) {
    static const auto with = std::make_unique<RoundedLevels>(kSignedLevels),
                      without = std::make_unique<RoundedLevels>(kUnsignedLevels);
    return has_sign ? *with : *without;
  }
};
// Returns the values of the 16 codes of a block.
template <bool kRounds>
[[gnu::target("avx512f,avx512vl,avx512bw,f16c"), gnu::always_inline]] inline __m512 LevelsOf(
    Half scale, __m512 levels, const RoundedLevels* rounded) {
  const auto bits = std::bit_cast<uint16_t>(scale);
  if constexpr (kRounds) {
    const size_t power = bits >> kFraction;
    if (rounded->serves[power]) [[likely]]
      return _mm512_mul_ps(_mm512_load_ps(rounded->levels[bits % kFractions].data()),
                           _mm512_set1_ps(rounded->powers[power]));
  }
  levels = _mm512_mul_ps(levels, _mm512_set1_ps(_cvtsh_ss(bits)));
  if constexpr (kRounds)
    levels =
        _mm512_maskz_cvtph_ps(kAll, _mm512_maskz_cvtps_ph(kAll, levels, _MM_FROUND_TO_NEAREST_INT));
  return levels;
}
constexpr int64_t kAhead = 2048;  // bytes
// Adds the products of kInBlock elements.
[[gnu::target("avx512f,avx512vl,avx512bw,f16c"), gnu::always_inline]] inline void AddBlock(
    const uint8_t* elements, __m512 levels, const float* x, __m512& even, __m512& odd) {
  // Only the lowest four bits of each index are used.
  const __m512i both =
      _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(elements)));
  even = _mm512_fmadd_ps(_mm512_maskz_permutexvar_ps(kAll, both, levels), _mm512_loadu_ps(x), even);
  odd = _mm512_fmadd_ps(
      _mm512_maskz_permutexvar_ps(kAll, _mm512_maskz_srli_epi32(kAll, both, 4), levels),
      _mm512_loadu_ps(x + kInBlock / 2), odd);
}
template <bool kRounds>
[[gnu::target("avx512f,avx512vl,avx512bw,f16c"), gnu::always_inline]] inline float Avx512DotOf(
    const PackedBlocks& blocks, int64_t first, const float* x, int64_t count) {
  const __m512 levels = _mm512_loadu_ps((blocks.has_sign ? kSignedLevels : kUnsignedLevels).data());
  const RoundedLevels* rounded = kRounds ? &RoundedLevels::Of(blocks.has_sign) : nullptr;
  __m512 even = _mm512_setzero_ps(), odd = even;
  if (blocks.block == kInBlock) {
    const uint8_t* at = blocks.elements + first / 2;
    const Half *scale = blocks.scales + first / kInBlock, *end = scale + count / kInBlock;
    // Several accumulators hide the latency of the additions.
    __m512 more_even = _mm512_setzero_ps(), more_odd = more_even;
    for (; end - scale >= 2; scale += 2, at += kInBlock, x += 2 * kInBlock) {
      // The hardware prefetcher stops at page boundaries.
      _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead, _MM_HINT_T0);
      AddBlock(at, LevelsOf<kRounds>(scale[0], levels, rounded), x, even, odd);
      AddBlock(at + kInBlock / 2, LevelsOf<kRounds>(scale[1], levels, rounded), x + kInBlock,
               more_even, more_odd);
    }
    even = _mm512_add_ps(even, more_even);
    odd = _mm512_add_ps(odd, more_odd);
    if (scale != end) AddBlock(at, LevelsOf<kRounds>(*scale, levels, rounded), x, even, odd);
  } else {
    for (Cell cell(blocks, first, count); cell.n > 0; cell.Next()) {
      const __m512 scaled = LevelsOf<kRounds>(*cell.scale, levels, rounded);
      for (int64_t i = 0; i < cell.n; i += kInBlock, x += kInBlock)
        AddBlock(cell.elements + i / 2, scaled, x, even, odd);
    }
  }
  alignas(64) float sums[16];
  _mm512_store_ps(sums, _mm512_add_ps(even, odd));
  return SumOf(_mm256_add_ps(_mm256_load_ps(sums), _mm256_load_ps(sums + 8)));
}
[[gnu::target("avx512f,avx512vl,avx512bw,f16c")]] float Avx512DotBlocks(const PackedBlocks& blocks,
                                                                        int64_t first,
                                                                        const float* x,
                                                                        int64_t count) {
  return blocks.rounds ? Avx512DotOf<true>(blocks, first, x, count)
                       : Avx512DotOf<false>(blocks, first, x, count);
}
#endif

std::vector<DecodingLoops> MakeLoops() {
  std::vector<DecodingLoops> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    loops.push_back(kAvx2);
    loops.back().scale_levels = Avx512ScaleLevels;
    loops.back().dot_blocks = Avx512DotBlocks;
  }
  if (__builtin_cpu_supports("avx2")) loops.push_back(kAvx2);
#endif
  loops.push_back(kBaseline);
  return loops;
}

}  // namespace

void SplitPairs(const float* x, int64_t count, float* out) {
  for (; count > 0; count -= kInBlock, x += kInBlock, out += kInBlock)
    for (int64_t i = 0; i < kInBlock / 2; ++i) {
      out[i] = x[2 * i];
      out[kInBlock / 2 + i] = x[2 * i + 1];
    }
}

std::span<const DecodingLoops> AvailableDecodingLoops() {
  static const std::vector<DecodingLoops> loops = MakeLoops();
  return loops;
}

}  // namespace mlc::engine
