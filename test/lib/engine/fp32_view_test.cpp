#include "lib/engine/fp32_view.h"

#include <cstring>
#include <limits>

#include "test/catch.h"

namespace mlc::test {
using namespace engine;
namespace {

// Includes the remainder of a vector, and conversions in place.
TEST_CASE("array conversions are equal to element conversions") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,     -0.0f,     1,          65504, 65520, 1e9f,
                               -1e9f, kInfinity, -kInfinity, 6e-8f, 1e-9f, 0.1f};
  while (values.size() < 70) values.push_back(values[values.size() - 12] * -1.2345f + 0.01f);
  for (int64_t count : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 70}) {
    INFO(count);
    const auto size = static_cast<size_t>(count);
    std::vector<Half> halves(size), expected_halves;
    std::vector<float> widened(size), rounded(size), expected;
    for (size_t i = 0; i < size; ++i) {
      expected_halves.push_back(Half(values[i]));
      expected.push_back(static_cast<float>(expected_halves[i]));
    }
    FloatToHalf(values.data(), halves.data(), count);
    HalfToFloat(halves.data(), widened.data(), count);
    RoundToHalf(values.data(), rounded.data(), count);
    std::vector<float> in_place(values.begin(), values.begin() + count);
    RoundToHalf(in_place.data(), count);
    CHECK((size == 0 ||
           std::memcmp(halves.data(), expected_halves.data(), size * sizeof(Half)) == 0));
    for (const std::vector<float>& each : {widened, rounded, in_place})
      CHECK((size == 0 || std::memcmp(each.data(), expected.data(), size * sizeof(float)) == 0));
  }
}

// An fp16 result that is kept in fp32 (`wide`) has the same values as one that is stored in fp16,
// whether it is stored in parts or as a whole.
TEST_CASE("an fp16 result that is kept in fp32 is rounded to fp16") {
  for (int64_t size : {5, 40000})
    for (int threads : {1, 2})
      for (bool put : {false, true}) {
        std::vector<Tensor> results;
        for (bool wide : {false, true}) {
          Fp32Result result(DType::kFp16, {size}, threads, wide);
          for (int64_t i = 0; i < size; ++i) result.data()[i] = static_cast<float>(i) * 0.1f;
          if (put) {
            result.Put(0, result.data(), 3);
            result.Put(3, result.data() + 3, size - 3);
          }
          results.push_back(result.Take(put));
        }
        CHECK(results[0].dtype() == DType::kFp16);
        CHECK(results[1].dtype() == DType::kFp32);
        CHECK(results[0].Cast(DType::kFp32).SameBytes(results[1]));
      }
}

}  // namespace
}  // namespace mlc::test
