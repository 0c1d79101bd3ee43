#include "lib/compress/histogram.h"

#include <cmath>
#include <random>

#include "test/catch.h"

using mlc::compress::Histogram;

namespace {

std::vector<float> Normal(int count, float scale) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("histogram: range, quantiles, and the sum of parts") {
  const std::vector<float> values = Normal(10000, 3);
  Histogram whole, first, second;
  whole.Add(values);
  first.Add(std::span(values).first(1000));
  second.Add(std::span(values).subspan(1000));
  second.Add(first);
  CHECK(whole.count() == 10000);
  CHECK(std::ranges::equal(whole.counts(), second.counts()));
  CHECK((whole.low() == second.low() && whole.high() == second.high()));
  CHECK(whole.low() == *std::ranges::min_element(values));
  CHECK(whole.high() == *std::ranges::max_element(values));
  std::vector<float> sorted = values;
  std::ranges::sort(sorted);
  for (const double share : {0.001, 0.1, 0.3, 0.7, 0.9, 0.999}) {
    const auto exact = static_cast<double>(sorted[static_cast<size_t>(share * 10000)]);
    CHECK(whole.Quantile(share) == Approx(exact).epsilon(1.0 / 16));
  }
  Histogram empty;
  empty.Add(std::vector<float>{NAN, INFINITY, -INFINITY});
  CHECK((empty.count() == 0 && empty.low() == 0 && empty.high() == 0));
  empty.Add(whole);
  CHECK(empty.low() == whole.low());
  Histogram zeros;
  zeros.Add(std::vector<float>(10, 0.0F));
  CHECK((zeros.count() == 10 && zeros.Error(0.1, -128, 127) == 0));
}

TEST_CASE("histogram: the error of rounding and clipping") {
  const std::vector<float> values = Normal(20000, 2);
  Histogram histogram;
  histogram.Add(values);
  for (const double scale : {0.01, 0.05, 0.1}) {
    double exact = 0;
    for (const float value : values) {
      const auto x = static_cast<double>(value);
      const double d = x - scale * std::clamp(std::round(x / scale), -128.0, 127.0);
      exact += d * d;
    }
    CHECK(histogram.Error(scale, -128, 127) == Approx(exact / 20000).epsilon(0.05));
  }
}
