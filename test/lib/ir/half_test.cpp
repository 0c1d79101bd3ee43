// Narrowing is compared with a search for the nearest representable value; the candidates come from
// the formula of IEEE 754.
#include "lib/support/half.h"

#include <limits>
#include <random>
#include <vector>

#include "lib/ir/tensor.h"
#include "test/catch.h"

namespace mlc {
namespace {

// The magnitudes of a binary format with `fraction_bits` and `bias` in ascending order, including
// the first one beyond the largest finite value.
std::vector<double> Magnitudes(int fraction_bits, int bias, int count) {
  std::vector<double> values;
  for (int code = 0; code <= count; ++code) {
    int exponent = code >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
    double unit = std::ldexp(1, std::max(exponent, 1) - bias - fraction_bits);
    values.push_back(unit * (fraction + (exponent ? 1 << fraction_bits : 0)));
  }
  return values;
}

// The code nearest to |value|, ties to even; codes from `count` on are infinity.
uint16_t Nearest(const std::vector<double>& magnitudes, double value) {
  double magnitude = std::fabs(value);
  auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude);
  if (above == magnitudes.end()) --above;
  auto code = static_cast<int>(above - magnitudes.begin());
  if (code > 0 && *above >= magnitude) {
    double up = *above - magnitude, down = magnitude - magnitudes[code - 1];
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<uint16_t>(code | (std::signbit(value) ? 0x8000 : 0));
}

const std::vector<double>& Halves() {
  static const std::vector<double> values = Magnitudes(10, 15, 0x7C00);
  return values;
}

TEST_CASE("half: every value widens by the formula of IEEE 754 and converts back") {
  for (int bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float wide = Half::ToFloat(half);
    int magnitude = bits & 0x7FFF;
    if (magnitude > 0x7C00) {
      if (!std::isnan(wide) || (Half::FromFloat(wide) | 0x200) != (half | 0x200)) FAIL(bits);
      continue;
    }
    double expected = magnitude == 0x7C00 ? INFINITY : Halves()[magnitude];
    if (bits & 0x8000) expected = -expected;
    if (static_cast<double>(wide) != expected || std::signbit(wide) != std::signbit(expected))
      FAIL(bits);
    if (Half::FromFloat(wide) != half || Half::FromDouble(wide) != half) FAIL(bits);
  }
}

TEST_CASE("half: known values") {
  struct Row {
    double value;
    uint16_t bits;
  };
  for (const Row& row :
       std::vector<Row>{{1, 0x3C00},
                        {-2, 0xC000},
                        {65504, 0x7BFF},
                        {65519.999, 0x7BFF},
                        {65520, 0x7C00},
                        {1e300, 0x7C00},
                        {0x1p-14, 0x0400},
                        {0x1p-24, 0x0001},
                        {0x1p-25, 0x0000},    // half of the smallest value rounds to even
                        {0x1.8p-24, 0x0002},  // 1.5 times the smallest value rounds to even
                        {0x1.000002p-25, 0x0001},
                        {1.0 / 3, 0x3555},
                        {-0.0, 0x8000}}) {
    CAPTURE(row.value);
    CHECK(Half(row.value).bits == row.bits);
  }
  // 1 + 2^-11 is a midpoint, and an additional 2^-30 breaks the tie. An intermediate float would
  // lose it.
  CHECK(Half(1 + 0x1p-11).bits == 0x3C00);
  CHECK(Half(1 + 0x1p-11 + 0x1p-30).bits == 0x3C01);
  CHECK(Half(1 + 3 * 0x1p-11 - 0x1p-30).bits == 0x3C01);
  CHECK(BFloat16(1 + 0x1p-8 + 0x1p-40).bits == 0x3F81);
  CHECK(BFloat16(1.0f + 0x1p-8f).bits == 0x3F80);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
}

TEST_CASE("half: narrowing rounds to nearest around every value and midpoint") {
  for (int code = 0; code < 0x7C00; ++code) {
    double low = Halves()[code], high = Halves()[code + 1], middle = (low + high) / 2;
    for (double value : {low, middle, std::nextafter(middle, 0), std::nextafter(middle, 1e9)}) {
      uint16_t expected = Nearest(Halves(), value);
      if (Half::FromDouble(value) != expected) FAIL(value << " " << Half::FromDouble(value));
      if (Half::FromDouble(-value) != (expected | 0x8000)) FAIL(-value);
    }
    for (float value : {static_cast<float>(middle), std::nextafterf(static_cast<float>(middle), 0),
                        std::nextafterf(static_cast<float>(middle), 1e9f)})
      if (Half::FromFloat(value) != Nearest(Halves(), value)) FAIL(value);
  }
}

TEST_CASE("half: vectorised narrowing gives the same bits") {
  std::mt19937 random(1);
  std::vector<float> values(100003);
  for (float& value : values) {
    uint32_t bits = random();
    if (random() % 2)
      bits = (bits & 0x87FFFFFF) | 0x38000000;  // half of the samples are near the range of fp16
    value = std::bit_cast<float>(bits);
  }
  values[0] = NAN, values[1] = -INFINITY, values[2] = std::bit_cast<float>(0xFF812345u);
  std::vector<uint16_t> narrow(values.size());
  ConvertElements(DType::kFp32, reinterpret_cast<std::byte*>(values.data()), DType::kFp16,
                  reinterpret_cast<std::byte*>(narrow.data()), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (narrow[i] != Half::FromFloat(values[i])) FAIL(std::bit_cast<uint32_t>(values[i]));
  // Single elements use the portable code path.
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t one;
    ConvertElements(DType::kFp32, reinterpret_cast<std::byte*>(&values[i]), DType::kFp16,
                    reinterpret_cast<std::byte*>(&one), 1);
    if (one != narrow[i]) FAIL(std::bit_cast<uint32_t>(values[i]));
  }
  // From double, also slightly off each value.
  for (double factor : {1.0, 1 + 0x1p-30, 1 - 0x1p-30}) {
    std::vector<double> doubles(values.begin(), values.end());
    for (double& value : doubles) value *= factor;
    ConvertElements(DType::kFp64, reinterpret_cast<std::byte*>(doubles.data()), DType::kFp16,
                    reinterpret_cast<std::byte*>(narrow.data()), std::ssize(doubles));
    for (size_t i = 0; i < doubles.size(); ++i)
      if (narrow[i] != Half::FromDouble(doubles[i])) FAIL(doubles[i]);
  }
}

TEST_CASE("half: vectorised widening gives the same bits") {
  std::vector<uint16_t> halves(0x10000);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> wide(halves.size());
  ConvertElements(DType::kFp16, reinterpret_cast<std::byte*>(halves.data()), DType::kFp32,
                  reinterpret_cast<std::byte*>(wide.data()), 0x10000);
  for (size_t i = 0; i < halves.size(); ++i)
    if (wide[i] != std::bit_cast<uint32_t>(Half::ToFloat(halves[i]))) FAIL(i);
  std::vector<double> doubles(halves.size());
  ConvertElements(DType::kFp16, reinterpret_cast<std::byte*>(halves.data()), DType::kFp64,
                  reinterpret_cast<std::byte*>(doubles.data()), 0x10000);
  for (size_t i = 0; i < halves.size(); ++i)
    if (!std::isnan(Half::ToFloat(halves[i])) ? doubles[i] != double{Half::ToFloat(halves[i])}
                                              : !std::isnan(doubles[i]))
      FAIL(i);
}

TEST_CASE("fp8: round trip, ties to even, overflow") {
  struct Format {
    DType dtype;
    int fraction, bias, count;
    uint8_t overflow;
  };
  for (Format format :
       {Format{DType::kFp8E4M3FN, 3, 7, 0x7F, 0x7F}, Format{DType::kFp8E5M2, 2, 15, 0x7C, 0x7C}}) {
    std::vector<double> magnitudes = Magnitudes(format.fraction, format.bias, format.count);
    auto narrow = [&](double value) {
      uint8_t bits;
      ConvertElements(DType::kFp64, reinterpret_cast<std::byte*>(&value), format.dtype,
                      reinterpret_cast<std::byte*>(&bits), 1);
      return bits;
    };
    for (int code = 0; code < format.count; ++code) {
      CAPTURE(code, Name(format.dtype));
      auto bits = static_cast<uint8_t>(code);
      double wide, middle = (magnitudes[code] + magnitudes[code + 1]) / 2;
      ConvertElements(format.dtype, reinterpret_cast<std::byte*>(&bits), DType::kFp64,
                      reinterpret_cast<std::byte*>(&wide), 1);
      CHECK(wide == magnitudes[code]);
      CHECK(narrow(wide) == code);
      CHECK(narrow(middle) == (code + code % 2));
      CHECK(narrow(std::nextafter(middle, 0)) == code);
      CHECK(narrow(std::nextafter(middle, 1e9)) == code + 1);
      CHECK(narrow(-wide) == (code | 0x80));
    }
    CHECK(narrow(1e6) == format.overflow);
    CHECK(narrow(-INFINITY) == (format.overflow | 0x80));
  }
}

}  // namespace
}  // namespace mlc
