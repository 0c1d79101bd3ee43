// Tests magnitudes of constants, from their elements or from their encodings.
#include "lib/passes/constant_ranges.h"

#include <cstring>
#include <limits>

#include "lib/ir/encoding.h"
#include "test/catch.h"

namespace mlc::test {
using namespace passes;
namespace {

constexpr double kLow = 0x1p-14, kHigh = 65520;

// 4-bit integers with one scale per 32 elements, the last of which is `last`; `read` counts the
// integers that were read.
Tensor Scaled(float scale, float last, std::optional<float> bias, int64_t* read) {
  constexpr int64_t kRows = 64, kColumns = 2048, kCells = kRows * kColumns / 32;
  std::vector<float> scales(kCells, scale);
  scales.back() = last;
  Tensor data = Tensor::Lazy(DType::kInt8, {kRows, kColumns},
                             [read](int64_t first, int64_t count, std::byte* out) {
                               *read += count;
                               for (int64_t i = 0; i < count; ++i)
                                 out[i] = static_cast<std::byte>((first + i) % 15 - 7);
                             });
  Encoding e{.data = data.Cast(DType::kInt4), .scale = Tensor::Of({kRows, kColumns / 32}, scales)};
  if (bias) e.bias = Tensor::Full(DType::kFp32, {kRows, kColumns / 32}, *bias);
  return Tensor::Encoded(e);
}

TEST_CASE("MaxMagnitudes uses the scales of an encoding") {
  int64_t read = 0;
  auto largest = [&](float scale, float last, std::optional<float> bias = {}) {
    read = 0;
    return MaxMagnitudes({Scaled(scale, last, bias, &read)}, kLow, kHigh).at(0);
  };
  constexpr int64_t kFew = 65536;
  double between = largest(0.5f, 1);
  CHECK(kLow <= between);
  CHECK(between < kHigh);
  CHECK(read < kFew);
  between = largest(0.5f, 1, 100.0f);
  CHECK(between >= 96.5);
  CHECK(between < kHigh);
  CHECK(read < kFew);
  // Otherwise elements are read: for a large scale, a large bias, small scales and NaN.
  CHECK(largest(0.5f, 10000) == 70000);
  CHECK(largest(0.5f, 1, 65530.0f) == 65537);
  CHECK(read >= kFew);
  CHECK(largest(0x1p-20f, 0x1p-20f) == 7 * 0x1p-20);
  CHECK(read >= kFew);
  CHECK(largest(0.5f, std::numeric_limits<float>::infinity()) == 3.5);
  CHECK(largest(0.5f, std::numeric_limits<float>::quiet_NaN()) == 3.5);
}

TEST_CASE("MaxMagnitudes knows that converted fp16 values are finite") {
  int64_t read = 0;
  auto largest = [&](float first_ones, float others) {
    read = 0;
    Tensor half =
        Tensor::Lazy(DType::kFp16, {1000, 100}, [&](int64_t first, int64_t count, std::byte* out) {
          read += count;
          for (int64_t i = 0; i < count; ++i) {
            const Half value(first + i < 50000 ? first_ones : others);
            std::memcpy(out + 2 * i, &value, 2);
          }
        });
    return MaxMagnitudes({half.Cast(DType::kFp32)}, kLow, kHigh).at(0);
  };
  const double between = largest(0.5f, 2);
  CHECK(kLow <= between);
  CHECK(between < kHigh);
  CHECK(read < 50000);
  // Small elements at the beginning prove nothing.
  CHECK(largest(0x1p-20f, 2) == 2);
  CHECK(largest(0x1p-20f, 0x1p-18f) == 0x1p-18);
}

TEST_CASE("MaxMagnitudes reads the elements of plain constants") {
  std::vector<float> values(100000, 0.5f);
  values[77777] = -70000;
  values[5] = std::numeric_limits<float>::infinity();
  Tensor dense = Tensor::Vector(values);
  CHECK(MaxMagnitudes({dense, dense.Rows(0, 5), Tensor::Vector<float>({})}, kLow, kHigh) ==
        std::vector<double>{70000, 0.5, 0});
}

}  // namespace
}  // namespace mlc::test
