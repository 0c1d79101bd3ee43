#include <cmath>
#include <limits>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace mlc {

namespace {

// OCP 8-bit floating point: E4M3FN (bias 7, no infinity, S.1111.111 is NaN) and E5M2 (the upper
// half of binary16).
struct Fp8E4M3FN {
  uint8_t bits;
};
struct Fp8E5M2 {
  uint8_t bits;
};
struct Bool {
  uint8_t bits;
};

// Codes above `last` represent overflow, which is stored as `overflow`.
uint8_t ToFp8(double value, int mantissa_bits, int bias, int last, int overflow, int nan) {
  int sign = std::signbit(value) ? 0x80 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | nan);
  if (std::isinf(value)) return static_cast<uint8_t>(sign | overflow);
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  if (magnitude == 0) exponent = 1 - bias;
  if (exponent > 2 * bias) return static_cast<uint8_t>(sign | overflow);
  // In units in the last place; a carry propagates into the exponent.
  int code = static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent))) +
             ((exponent + bias - 1) << mantissa_bits);
  return static_cast<uint8_t>(sign | (code > last ? overflow : code));
}

double FromFp8E4M3FN(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  double value = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  if ((bits & 0x7F) == 0x7F) value = std::numeric_limits<double>::quiet_NaN();
  return bits & 0x80 ? -value : value;
}

// Every element type converts losslessly to double, int64_t or uint64_t.
template <class T>
using Wide = std::conditional_t<
    std::is_same_v<T, uint64_t>, uint64_t,
    std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, Bool>, int64_t, double>>;

template <class T>
Wide<T> Widen(T value) {
  if constexpr (std::is_same_v<T, Bool>)
    return value.bits != 0;
  else if constexpr (std::is_same_v<T, Fp8E4M3FN>)
    return FromFp8E4M3FN(value.bits);
  else if constexpr (std::is_same_v<T, Fp8E5M2>)
    return Half::ToFloat(uint16_t(value.bits << 8));
  else
    return static_cast<Wide<T>>(value);
}

// Converts an integer to a double that rounds to a narrower float exactly as the integer would: the
// bits beyond a double's precision are collected in a sticky bit.
template <class W>
double StickyDouble(W value) {
  if constexpr (std::is_same_v<W, double>) {
    return value;
  } else {
    bool negative = value < 0;
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    if (magnitude >> 53)
      magnitude = (magnitude & ~uint64_t{0xFFF}) | (magnitude & 0xFFF ? 0x800 : 0);
    double result = static_cast<double>(magnitude);
    return negative ? -result : result;
  }
}

template <class T, class W>
T Narrow(W value) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{value != 0};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(StickyDouble(value));
  } else if constexpr (std::is_same_v<T, Fp8E4M3FN>) {
    return {ToFp8(StickyDouble(value), 3, 7, 0x7E, 0x7F, 0x7F)};
  } else if constexpr (std::is_same_v<T, Fp8E5M2>) {
    return {ToFp8(StickyDouble(value), 2, 15, 0x7B, 0x7C, 0x7E)};
  } else if constexpr (std::is_same_v<W, double>) {
    constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(kLow)) return kLow;
    if (value >= static_cast<double>(kHigh)) return kHigh;
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class F>
void Visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(Bool{});
    case DType::kFp16:
      return f(Half{});
    case DType::kFp32:
      return f(float{});
    case DType::kFp64:
      return f(double{});
    case DType::kBf16:
      return f(BFloat16{});
    case DType::kFp8E4M3FN:
      return f(Fp8E4M3FN{});
    case DType::kFp8E5M2:
      return f(Fp8E5M2{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUint8:
      return f(uint8_t{});
    case DType::kUint16:
      return f(uint16_t{});
    case DType::kUint32:
      return f(uint32_t{});
    case DType::kUint64:
      return f(uint64_t{});
    default:
      MLC_CHECK(false, "elements of {} are not whole bytes", Name(dtype));
  }
}

// Half::FromFloat without branches, to enable vectorisation.
uint16_t HalfFromFloat(float value) {
  int32_t bits = std::bit_cast<int32_t>(value), magnitude = bits & 0x7FFFFFFF;
  int32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  int32_t subnormal = std::bit_cast<int32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
  int32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF);
  int32_t result = magnitude >= 0x38800000 ? normal : subnormal;
  result = magnitude >= 0x477FF000 ? 0x7C00 : result;
  result = magnitude > 0x7F800000 ? nan : result;
  return static_cast<uint16_t>(result | (bits >> 16 & 0x8000));
}

// Half::ToFloat without branches. (The processor's instruction would quieten signalling NaNs.)
uint32_t FloatFromHalf(uint16_t half) {
  uint32_t magnitude = half & 0x7FFF;
  uint32_t normal = (magnitude << 13) + 0x38000000;
  uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t result = magnitude >= 0x0400 ? normal : subnormal;
  result = magnitude >= 0x7C00 ? normal + 0x38000000 : result;
  return result | static_cast<uint32_t>(half & 0x8000) << 16;
}

// Applies f to `count` elements of type In. Uses memcpy because file slices may be unaligned.
template <class In, class Out, class F>
void Map(const std::byte* in, std::byte* out, int64_t count, F&& f) {
  for (int64_t i = 0; i < count; ++i) {
    In value;
    std::memcpy(&value, in + i * sizeof(In), sizeof(In));
    Out result = f(value);
    std::memcpy(out + i * sizeof(Out), &result, sizeof(Out));
  }
}

#if defined(__x86_64__)
// Converts eight elements at a time with instructions that round like Half. Returns the number of
// elements converted.
__attribute__((target("avx,f16c"))) int64_t NarrowF16c(const std::byte* in, std::byte* out,
                                                       int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(in + i * 4));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
// Like NarrowF16c, except that groups of eight with a NaN, whose payload the instruction may
// change, are converted by `other`.
template <class F>
__attribute__((target("avx,f16c"))) int64_t WidenF16c(const std::byte* in, std::byte* out,
                                                      int64_t count, F&& other) {
  const __m128i magnitude = _mm_set1_epi16(0x7FFF), infinity = _mm_set1_epi16(0x7C00);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * 2));
    if (_mm_movemask_epi8(_mm_cmpgt_epi16(_mm_and_si128(halves, magnitude), infinity)))
      other(in + i * 2, out + i * 4, 8);
    else
      _mm256_storeu_ps(reinterpret_cast<float*>(out + i * 4), _mm256_cvtph_ps(halves));
  }
  return i;
}
// clang 16 does not support "f16c" in __builtin_cpu_supports.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
const bool kHasF16c = HasF16c();
#endif

// RoundToOdd without branches.
float FloatBesideOdd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(near);
  const bool inexact = static_cast<double>(near) != value && (bits & 0x7F800000) != 0x7F800000;
  const bool beyond = std::fabs(static_cast<double>(near)) > std::fabs(value);
  return std::bit_cast<float>(inexact ? (bits - static_cast<uint32_t>(beyond)) | 1 : bits);
}

// Converts by way of fp32, in blocks.
template <class Step>
void InBlocks(int64_t count, Step&& step) {
  constexpr int64_t kBlock = 512;
  float block[kBlock];
  for (int64_t i = 0; i < count; i += kBlock)
    step(i, std::min(kBlock, count - i), reinterpret_cast<std::byte*>(block));
}

// Fast paths for the conversions that are applied to whole weight files. Returns false for other
// pairs of types.
bool ConvertFast(DType from, const std::byte* in, DType to, std::byte* out, int64_t count) {
  if (from == DType::kFp32 && to == DType::kFp16) {
    int64_t done = 0;
#if defined(__x86_64__)
    if (kHasF16c) done = NarrowF16c(in, out, count);
#endif
    Map<float, uint16_t>(in + done * 4, out + done * 2, count - done, HalfFromFloat);
  } else if (from == DType::kFp16 && to == DType::kFp32) {
    int64_t done = 0;
#if defined(__x86_64__)
    if (kHasF16c)
      done = WidenF16c(in, out, count, [](const std::byte* from, std::byte* to, int64_t n) {
        Map<uint16_t, uint32_t>(from, to, n, FloatFromHalf);
      });
#endif
    Map<uint16_t, uint32_t>(in + done * 2, out + done * 4, count - done, FloatFromHalf);
  } else if (from == DType::kBf16 && to == DType::kFp32) {
    Map<uint16_t, uint32_t>(in, out, count, [](uint16_t bits) { return uint32_t{bits} << 16; });
  } else if (from == DType::kBf16 && to == DType::kFp16) {
    Map<uint16_t, uint16_t>(in, out, count, [](uint16_t bits) {
      return HalfFromFloat(std::bit_cast<float>(uint32_t{bits} << 16));
    });
  } else if (from == DType::kFp16 && to == DType::kFp64) {
    InBlocks(count, [&](int64_t first, int64_t n, std::byte* block) {
      ConvertFast(from, in + first * 2, DType::kFp32, block, n);
      Map<float, double>(block, out + first * 8, n, [](float value) { return double{value}; });
    });
  } else if (from == DType::kFp64 && to == DType::kFp16) {
    InBlocks(count, [&](int64_t first, int64_t n, std::byte* block) {
      Map<double, float>(in + first * 8, block, n, FloatBesideOdd);
      ConvertFast(DType::kFp32, block, to, out + first * 2, n);
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace

void ConvertElements(DType from, const std::byte* in, DType to, std::byte* out, int64_t count) {
  if (count == 0) return;
  if (from == to) {
    std::memcpy(out, in, ByteCount(from, count));
    return;
  }
  if (ConvertFast(from, in, to, out, count)) return;
  // Converts in two steps through the wide type, so that loops are needed per dtype rather than per
  // pair of dtypes.
  constexpr int64_t kBlock = 512;
  Visit(from, [&]<class From>(From) {
    using W = Wide<From>;
    W block[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      int64_t n = std::min(kBlock, count - i);
      Map<From, W>(in + i * sizeof(From), reinterpret_cast<std::byte*>(block), n, Widen<From>);
      Visit(to, [&]<class To>(To) {
        Map<W, To>(reinterpret_cast<const std::byte*>(block), out + i * sizeof(To), n,
                   Narrow<To, W>);
      });
    }
  });
}

}  // namespace mlc
