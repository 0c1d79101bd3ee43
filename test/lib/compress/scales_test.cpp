#include "lib/compress/scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lib/compress/lanes.h"
#include "test/catch.h"

namespace mlc::compress {
namespace {

std::vector<float> Drawn(size_t count, float size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = normal(random);
  return numbers;
}

float Nearest(float x, const Scale& scale, const Integers& integers) {
  return std::clamp(std::nearbyint(x / scale.scale) + scale.zero, integers.low(), integers.high());
}

}  // namespace

TEST_CASE("scales: integers of blocks of any size are those of each number") {
  for (const bool asymmetric : {false, true})
    for (const size_t block : {1, 3, 9, 16, 17, 32, 40})
      for (const size_t used : {size_t{0}, block / 2}) {
        CAPTURE(asymmetric, block, used);
        const Integers integers{4, asymmetric};
        const std::vector<float> numbers = Drawn(101, 3, 1);
        std::vector<float> scales(128), zeros(128);
        for (size_t i = 0; i < scales.size(); ++i) {
          scales[i] = std::ldexp(1.0F, -static_cast<int>(i % 3));
          zeros[i] = asymmetric ? static_cast<float>(i % 16) : 0;
        }
        std::vector<std::byte> out(numbers.size() + 1, std::byte{0x5A});
        ToIntegers(numbers, {scales, zeros, block, used}, integers, out.data());
        for (size_t i = 0; i < numbers.size(); ++i) {
          const size_t cell = (i + used) / block;
          const float wanted = Nearest(numbers[i], {scales[cell], zeros[cell]}, integers);
          REQUIRE(static_cast<float>(static_cast<int8_t>(out[i])) == wanted);
        }
        CHECK(out.back() == std::byte{0x5A});
      }
}

TEST_CASE("scales: the error of a scale is that of its integers, with weights") {
  const Integers integers{4, true};
  const Scale scale{0.375F, 6};
  for (const size_t count : {5, 16, 50}) {
    const std::vector<float> numbers = Drawn(count, 2, 2), drawn = Drawn(count, 1, 3);
    std::vector<float> weights;
    for (const float x : drawn) weights.push_back(x * x);
    double plain = 0, weighted = 0;
    for (size_t i = 0; i < count; ++i) {
      const float q = Nearest(numbers[i], scale, integers);
      const double off = static_cast<double>(numbers[i] - scale.scale * (q - scale.zero));
      plain += off * off;
      weighted += off * off * static_cast<double>(weights[i]);
    }
    CHECK(ErrorOf(numbers, {}, scale, integers) == Approx(plain).epsilon(1e-5));
    CHECK(ErrorOf(numbers, weights, scale, integers) == Approx(weighted).epsilon(1e-5));
  }
}

TEST_CASE("scales: the best scale states its error, and loses less than covering the range") {
  for (const bool asymmetric : {false, true})
    for (const size_t block : {9, 32, 100, 3000})
      for (const size_t count : {1, 7, 16, 19}) {
        CAPTURE(asymmetric, block, count);
        const Integers integers{4, asymmetric};
        const std::vector<float> numbers = Drawn(block * count, 0.01F, 4);
        std::vector<Scale> best(count);
        BestScales(numbers, {}, block, integers, Stored::kFp16, best);
        for (size_t i = 0; i < count; ++i) {
          const std::span<const float> own(&numbers[i * block], block);
          const double error = ErrorOf(own, {}, best[i], integers);
          CHECK(best[i].error == Approx(error).epsilon(1e-4));
          const auto [low, high] = std::ranges::minmax(own);
          Scale range{std::max(-low / 8, high / 7), 0};
          if (asymmetric) {
            range.scale = (high - low) / 15;
            range.zero = std::nearbyint(-low / range.scale);
          }
          range.scale = RoundedScale(Stored::kFp16, range.scale);
          CHECK(error < 1.001 * ErrorOf(own, {}, range, integers));
        }
      }
}

TEST_CASE("scales: numbers may have any size that their scale can have") {
  const std::vector<float> numbers = Drawn(64, 1, 5);
  std::vector<Scale> one(2), other(2);
  BestScales(numbers, {}, 32, {4, false}, Stored::kFp32, one);
  for (const int exponent : {-120, -70, 70, 120}) {
    CAPTURE(exponent);
    std::vector<float> scaled;
    for (const float x : numbers) scaled.push_back(std::ldexp(x, exponent));
    BestScales(scaled, {}, 32, {4, false}, Stored::kFp32, other);
    for (size_t i = 0; i < 2; ++i) CHECK(other[i].scale == std::ldexp(one[i].scale, exponent));
  }
}

TEST_CASE("scales: a block of zeros has the smallest scale") {
  const std::vector<float> zeros(32);
  for (const bool asymmetric : {false, true})
    for (const Stored stored : {Stored::kFp32, Stored::kFp16, Stored::kFp16Digits}) {
      Scale scale;
      BestScales(zeros, {}, 32, {8, asymmetric}, stored, {&scale, 1});
      CHECK(scale.scale ==
            (stored == Stored::kFp32 ? std::numeric_limits<float>::min() : kLeastNormalHalf));
      CHECK(scale.error == 0);
    }
}

TEST_CASE("scales: rounding gives fp16, or its digits") {
  for (const float x :
       {0x1.004p0F, 0x1.002p0F, 0x1.0021p0F, 0x1.006p0F, -3.14159F, 65519.0F, 1e-5F})
    if (std::fabs(x) >= kLeastNormalHalf)
      CHECK(RoundedScale(Stored::kFp16, x) == static_cast<float>(Half(x)));
    else
      CHECK(RoundedScale(Stored::kFp16, x) == kLeastNormalHalf);
  CHECK(RoundedScale(Stored::kFp16, -1e-9F) == -kLeastNormalHalf);
  CHECK(RoundedScale(Stored::kFp16, 65520.0F) == std::numeric_limits<float>::infinity());
  CHECK(RoundedScale(Stored::kFp16Digits, 0x1.0021p-60F) == 0x1.004p-60F);
  CHECK(RoundedScale(Stored::kFp16Digits, 0x1.ffffp127F) == 0x1.ffcp127F);
  CHECK(RoundedScale(Stored::kFp32, 0x1.0021p0F) == 0x1.0021p0F);
  Floats lanes;
  for (size_t i = 0; i < kLanes; ++i)
    lanes[i] = std::ldexp(1 + static_cast<float>(i) * 0x1.5p-12F, 4 * static_cast<int>(i) - 30);
  for (const Stored stored : {Stored::kFp32, Stored::kFp16, Stored::kFp16Digits}) {
    Floats rounded = lanes;
    RoundScale<Floats, Bits>(stored, rounded);
    for (size_t i = 0; i < kLanes; ++i) CHECK(rounded[i] == RoundedScale(stored, lanes[i]));
  }
}

}  // namespace mlc::compress
