// lib/support/half.h - floating-point storage types that C++ lacks, with exact widening and
// round-to-nearest-even narrowing.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace mlc {

// Rounds to odd: returns d if it is a float, otherwise the adjacent float whose last bit is 1.
// Rounding the result again gives the same as rounding d once.
inline float RoundToOdd(double d) {
  float f = static_cast<float>(d);
  if (!std::isfinite(f) || static_cast<double>(f) == d) return f;
  uint32_t x = std::bit_cast<uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(d)) x -= 1;
  return std::bit_cast<float>(x | 1);
}

// IEEE 754 binary16. Narrowing from double rounds once, overflow gives infinity, and NaN becomes a
// quiet NaN.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(double value) : bits(FromDouble(value)) {}
  explicit Half(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }
  explicit operator double() const { return ToFloat(bits); }
  static Half FromBits(uint16_t bits) {
    Half h;
    h.bits = bits;
    return h;
  }
  static float ToFloat(uint16_t h) {
    uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
    if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    float subnormal = float(mantissa) * 0x1p-24f;
    return sign ? -subnormal : subnormal;
  }
  static uint16_t FromFloat(float f) {
    uint32_t x = std::bit_cast<uint32_t>(f), sign = x >> 16 & 0x8000, magnitude = x & 0x7FFFFFFF;
    if (magnitude > 0x7F800000u) return uint16_t(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000u) return uint16_t(sign | 0x7C00);  // 65520 and above
    if (magnitude >= 0x38800000u) {                                // normal: at least 2^-14
      uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
      return uint16_t(sign | ((rounded - 0x38000000u) >> 13));
    }
    // Adding 0.5 aligns the last bit of the subnormal with the last bit of a float in [0.5, 1), so
    // that the FPU rounds.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  static uint16_t FromDouble(double d) { return FromFloat(RoundToOdd(d)); }
};

// bfloat16: the upper half of a binary32.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(FromFloat(value)) {}
  explicit BFloat16(double value) : bits(FromDouble(value)) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  explicit operator double() const { return float(*this); }
  static BFloat16 FromBits(uint16_t bits) {
    BFloat16 b;
    b.bits = bits;
    return b;
  }
  static uint16_t FromFloat(float f) {
    uint32_t x = std::bit_cast<uint32_t>(f);
    if ((x & 0x7FFFFFFF) > 0x7F800000u) return uint16_t(x >> 16 | 0x40);
    return uint16_t((x + 0x7FFF + (x >> 16 & 1)) >> 16);
  }
  static uint16_t FromDouble(double d) { return FromFloat(RoundToOdd(d)); }
};

}  // namespace mlc
