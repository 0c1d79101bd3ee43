#include "lib/verify/language_agreement.h"

#include <cmath>

#include "test/catch.h"

namespace mlc::verify {
namespace {

Tensor Logits(Dims dims, std::vector<float> values) { return Tensor::Of<float>(dims, values); }

// By hand: predictions 1/4 and 3/4 where the reference has 1/2 and 1/2 give ln(2) / 2 + ln(2 / 3) /
// 2; two other predictions are equal, because a constant added to all logits has no effect.
TEST_CASE("CompareLogits: Kullback-Leibler divergence", "[verify]") {
  float ln3 = std::log(3.0f);
  LanguageFigures figures =
      CompareLogits(Logits({2, 2}, {0, ln3, 5, 5}), Logits({2, 2}, {0, 0, 0, 0}));
  double first = std::log(2.0) / 2 + std::log(2.0 / 3) / 2;
  CHECK(figures.tokens == 2);
  CHECK(figures.max_divergence == Approx(first).margin(1e-6));
  CHECK(figures.mean_divergence == Approx(first / 2).margin(1e-6));
}

TEST_CASE("a different token is accepted if the gap is within the error", "[verify]") {
  // The last of eight tokens is most likely in the last two of four rows, where the reference
  // prefers its own by 0.1 and 3. RMSE: sqrt((0.2^2 + 3.5^2) / 32).
  std::vector<float> value(32, 0.0f), reference(32, 0.0f);
  for (size_t row = 0; row < 4; ++row) value[row * 8] = reference[row * 8] = row < 3 ? 1 : 3;
  value[23] = 1.1f;
  reference[23] = 0.9f;
  value[31] = 3.5f;
  LanguageFigures figures = CompareLogits(Logits({4, 8}, value), Logits({4, 8}, reference));
  CHECK(figures.equal == 2);
  CHECK(figures.error == Approx(std::sqrt((0.04 + 12.25) / 32)).epsilon(1e-5));
  REQUIRE(figures.close.size() == 1);
  CHECK(figures.close[0].position == 2);
  CHECK(figures.close[0].token == 7);
  CHECK(figures.close[0].reference == 0);
  CHECK(figures.close[0].gap == Approx(0.1).epsilon(1e-5));
  REQUIRE(figures.wrong.size() == 1);
  CHECK(figures.wrong[0].position == 3);
  CHECK(figures.wrong[0].gap == Approx(3));
}

}  // namespace
}  // namespace mlc::verify
