// lib/compress/rounding.h - the precision in which scales and tables are stored.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

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

// Rounds to the precision of fp16, ties to even, with unlimited range.
inline float RoundedDigits(float x) {
  constexpr uint32_t kDropped = 13;  // dropped bits of fp32's 23-bit mantissa
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t kept = bits >> kDropped, rounded = bits + (1U << (kDropped - 1)) - 1 + (kept & 1);
  const float whole = std::bit_cast<float>(rounded >> kDropped << kDropped);
  return std::isfinite(whole) ? whole : std::bit_cast<float>(kept << kDropped);
}

inline float RoundedTo(Stored stored, float x) {
  switch (stored) {
    case Stored::kFp32:
      return x;
    case Stored::kFp16:
      if (std::fabs(x) < kLeastNormalHalf || std::fabs(x) >= kGreatestHalf)
        return static_cast<float>(Half(x));
      break;
    case Stored::kFp16Digits:
      break;
  }
  return RoundedDigits(x);
}

// Rounds the scale of integers. A scale in fp16 is at least the smallest normal number, because
// processors flush subnormal numbers to 0, and a scale of 0 makes some of them divide by 0.
inline float RoundedScale(Stored stored, float scale) {
  scale = RoundedTo(stored, scale);
  if (stored != Stored::kFp16 || std::fabs(scale) >= kLeastNormalHalf) return scale;
  return std::copysign(kLeastNormalHalf, scale);
}

}  // namespace mlc::compress
