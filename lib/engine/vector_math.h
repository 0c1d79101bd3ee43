// lib/engine/vector_math.h - branch-free transcendental functions in fp32, for loops that compilers
// vectorise. Functions that g++ considers too long to inline are marked, since it does not
// vectorise calls.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace mlc::engine {

// e^x within two units in the last place, without branches: 2^n * e^r with |r| <= ln(2) / 2 and
// Cephes' polynomial (expf.c).
inline float Exp(float x) {
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer in the low bits
  float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  float shifted = clamped * 1.44269504f + kRound, n = shifted - kRound;
  float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n as two factors, so that subnormal results are correct.
  int32_t exponent =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound));
  int32_t half = exponent >> 1;
  float a = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  float b = std::bit_cast<float>(static_cast<uint32_t>(exponent - half + 127) << 23);
  return p * a * b;
}

// Uses Cephes' polynomial (tanhf.c) near zero, where the quotient would cancel.
inline float Tanh(float x) {
  float z = x * x;
  float near = -5.70498872745e-3f;
  near = near * z + 2.06390887954e-2f;
  near = near * z - 5.37397155531e-2f;
  near = near * z + 1.33314422036e-1f;
  near = near * z - 3.33332819422e-1f;
  near = near * z * x + x;
  float far = 1.0f - 2.0f / (Exp(2.0f * x) + 1.0f);
  return std::fabs(x) < 0.625f ? std::copysign(near, x) : far;  // preserves -0.0
}

// e^x - 1: uses Taylor's polynomial near zero, where the difference would cancel.
inline float Expm1(float x) {
  float near = 1.0f / 5040;
  near = near * x + 1.0f / 720;
  near = near * x + 1.0f / 120;
  near = near * x + 1.0f / 24;
  near = near * x + 1.0f / 6;
  near = near * x + 0.5f;
  near = near * x * x + x;
  float far = Exp(x) - 1.0f;
  return std::fabs(x) < 0.4f ? std::copysign(near, x) : far;  // preserves -0.0
}

// log(1 + x) for x in [0, 1]: the series of 2 * atanh(x / (2 + x)), whose argument is at most 1/3.
inline float Log1p(float x) {
  float s = x / (2.0f + x), z = s * s;
  float p = 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  return 2.0f * (s + s * z * p);
}

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

// The upper tail probability of the normal distribution for x >= 0, erfc(x / sqrt(2)) / 2. It is
// e^(-x^2 / 2), with a split exponent that preserves its digits, times a least-squares fit (in q =
// (x - 3) / (x + 3)) of (1 + x) e^(x^2 / 2) erfc(x / sqrt(2)) / 2 up to 15, where the result is
// zero.
[[gnu::always_inline]] inline float NormalTail(float x) {
  x = x < 15.0f ? x : 15.0f;
  float above = x + 3.0f, beyond = x + 1.0f, inverse = 1.0f / (above * beyond);
  float q = (x - 3.0f) * beyond * inverse;
  float p = -5.94602517e-5f;
  p = p * q - 4.38187126e-4f;
  p = p * q - 2.61969953e-4f;
  p = p * q + 2.98881588e-3f;
  p = p * q + 1.12560686e-3f;
  p = p * q - 2.27281431e-2f;
  p = p * q + 4.51688925e-2f;
  p = p * q - 1.64321796e-2f;
  p = p * q - 9.65269533e-2f;
  p = p * q + 4.86055794e-1f;
  // The square of a 12-bit significand is exact; the remaining exponent is at most 0.11.
  float high = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xfffff000u);
  float rest = -0.5f * (x - high) * (x + high);
  float e = 1.0f / 24;
  e = e * rest + 1.0f / 6;
  e = e * rest + 0.5f;
  e = e * rest + 1.0f;
  e = e * rest + 1.0f;
  return p * above * inverse * e * Exp(-0.5f * high * high);
}

// Uses a least-squares fit of erf(x) / x near zero, where the difference would cancel.
[[gnu::always_inline]] inline float Erf(float x) {
  float z = x * x;
  float near = -6.75755524e-4f;
  near = near * z + 5.11446881e-3f;
  near = near * z - 2.68340456e-2f;
  near = near * z + 1.12833461e-1f;
  near = near * z - 3.76126141e-1f;
  near = near * z + 1.12837916f;
  near = near * x;
  float far = std::copysign(1.0f - 2.0f * NormalTail(1.41421356f * std::fabs(x)), x);
  return std::fabs(x) >= 0.75f ? far : near;
}
}  // namespace mlc::engine
