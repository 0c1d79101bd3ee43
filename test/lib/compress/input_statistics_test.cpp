#include "lib/compress/input_statistics.h"

#include <random>

#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

// Vectors of three columns: the first two are equal, the third is independent, and all have the mean 2.
InputStatistics Sampled(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> vectors;
  for (int64_t i = 0; i < count; ++i) {
    const float shared = normal(random);
    vectors.insert(vectors.end(), {2 + shared, 2 + shared, 2 + normal(random)});
  }
  InputSums sums(1, 3, true);
  sums.Add(0, vectors, 1);
  return sums.Means();
}

double Covariance(const InputStatistics& inputs, int64_t r, int64_t c) {
  return static_cast<double>(inputs.products[r * 3 + c]) -
         static_cast<double>(inputs.mean[r]) * static_cast<double>(inputs.mean[c]);
}

}  // namespace

TEST_CASE("input statistics: covariances from few vectors shrink, means and variances stay") {
  double kept = 0;  // share of the covariance
  for (const int64_t count : {4, 16, 64, 4096}) {
    const InputStatistics before = Sampled(count);
    InputStatistics after = before;
    ShrinkCovariances(after);
    CHECK(after.mean == before.mean);
    CHECK(after.square == before.square);
    for (int64_t c = 0; c < 3; ++c) CHECK(after.products[c * 4] == before.products[c * 4]);
    CHECK(after.products[1] == after.products[3]);
    const double share = Covariance(after, 0, 1) / Covariance(before, 0, 1);
    CHECK(share > kept);
    CHECK(share <= 1);
    CHECK(Covariance(after, 0, 2) == Approx(share * Covariance(before, 0, 2)).margin(1e-5));
    kept = share;
  }
  CHECK(kept > 0.99);
}

TEST_CASE("input statistics: covariances of one vector, which are none, stay finite") {
  InputStatistics one = Sampled(1);
  const InputStatistics before = one;
  ShrinkCovariances(one);
  for (size_t i = 0; i < 9; ++i) CHECK(one.products[i] == Approx(before.products[i]));
}
