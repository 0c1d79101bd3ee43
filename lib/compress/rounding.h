// lib/compress/rounding.h - the precision in which scales and tables are stored.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "lib/support/half.h"

namespace mlc::compress {

enum class Stored : uint8_t {
  kFp32,
  kFp16,
  // The precision of fp16 with the range of fp32. Weights of a program that will be narrowed may
  // be too small or too large for fp16; the operation then stays in fp32, or the weights are
  // scaled.
  kFp16Digits,
};

inline constexpr float kLeastNormalHalf = 0x1p-14F, kGreatestHalf = 65504;

// Rounds to the precision of fp16, ties to even, with unlimited range. `Number` is float, or a vector
// of floats, and `Bits` what it consists of.
template <class Number, class Bits>
[[gnu::always_inline]] inline void RoundDigits(Number& x) {
  constexpr uint32_t kDropped = 13;  // dropped bits of fp32's 23-bit mantissa
  const auto bits = __builtin_bit_cast(Bits, x);
  const Bits kept = bits >> kDropped,
             rounded = (bits + ((1U << (kDropped - 1)) - 1) + (kept & 1)) >> kDropped << kDropped;
  const auto whole = __builtin_bit_cast(Number, rounded);
  x = whole - whole == Number{} ? whole
                                : __builtin_bit_cast(Number, kept << kDropped);  // or infinite
}

// Rounds the scale of integers. A scale in fp16 is at least the smallest normal number, because
// processors flush subnormal numbers to 0, and a scale of 0 makes some of them divide by 0.
template <class Number, class Bits>
[[gnu::always_inline]] inline void RoundScale(Stored stored, Number& scale) {
  if (stored == Stored::kFp32) return;
  RoundDigits<Number, Bits>(scale);
  if (stored == Stored::kFp16Digits) return;
  const Number none = {}, least = none + kLeastNormalHalf,
               most = none + std::numeric_limits<float>::infinity(),
               size = scale < none ? -scale : scale;
  scale = size > none + kGreatestHalf ? most : scale;
  scale = size < least ? (scale < none ? -least : least) : scale;
}

inline float RoundedScale(Stored stored, float scale) {
  RoundScale<float, uint32_t>(stored, scale);
  return scale;
}

inline float RoundedTo(Stored stored, float x) {
  if (stored == Stored::kFp32) return x;
  if (stored == Stored::kFp16 && (std::fabs(x) < kLeastNormalHalf || std::fabs(x) >= kGreatestHalf))
    return static_cast<float>(Half(x));
  RoundDigits<float, uint32_t>(x);
  return x;
}

}  // namespace mlc::compress
