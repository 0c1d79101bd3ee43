#include "lib/ir/random_tensor.h"

#include <cmath>

#include "test/catch.h"

namespace mlc {
namespace {

TEST_CASE("random floats are normal") {
  Tensor x = RandomTensor(DType::kFp32, {100, 100}, 0, 1);
  double sum = 0, squares = 0, within = 0;
  for (double v : x.Doubles()) sum += v, squares += v * v, within += std::fabs(v) < 1;
  CHECK(std::fabs(sum / 1e4) < 0.04);          // four standard errors of the mean
  CHECK(std::fabs(squares / 1e4 - 1) < 0.06);  // and of the variance
  CHECK(std::fabs(within / 1e4 - 0.6827) < 0.02);
}

TEST_CASE("a seed and a stream make the same tensor again") {
  Tensor x = RandomTensor(DType::kFp16, {7}, 5, 0);
  CHECK(x.SameBytes(RandomTensor(DType::kFp16, {7}, 5, 0)));
  CHECK_FALSE(x.SameBytes(RandomTensor(DType::kFp16, {7}, 5, 1)));
  CHECK_FALSE(x.SameBytes(RandomTensor(DType::kFp16, {7}, 6, 0)));
}

TEST_CASE("random integers are 0 or 1") {
  Tensor x = RandomTensor(DType::kInt32, {1000}, 0, 0);
  int64_t ones = 0;
  for (int64_t v : x.Ints()) {
    CHECK((v == 0 || v == 1));
    ones += v;
  }
  CHECK((ones > 400 && ones < 600));
  CHECK(RandomTensor(DType::kBool, {3}, 0, 0).dtype() == DType::kBool);
}

}  // namespace
}  // namespace mlc
