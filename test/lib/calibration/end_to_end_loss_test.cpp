#include "lib/calibration/end_to_end_loss.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::calibration;

namespace {

// Compares softmax(x + shift) with softmax(x), for x = (most, 0, 0).
compress::Loss LossOf(float most, const char* operation, const char* shift) {
  auto program = [&](const char* by) {
    return ParseText(fmt::format(R"(func main<ios16>(tensor<fp32, [1, 3]> x) {{
  s = add(x = x, y = const tensor<fp32, [1, 3]>([[0, {}, 0]]));
  p = {};
  y = reshape(x = p, shape = [3]);
}} -> (y);)",
                                 by, operation),
                     "test.mil", Ops());
  };
  Samples samples;
  const std::vector<float> x = {most, 0, 0};
  samples.functions["main"] = {{{{"x", Tensor::Of({1, 3}, x)}}}};
  EndToEndLoss loss(samples, 10, {});
  loss(program("0"));
  return loss(program(shift));
}

}  // namespace

TEST_CASE("loss: probabilities count by their scores, but not the smallest") {
  const char* softmax = "softmax(x = s, axis = const int32(1))";
  // A sure model: the probabilities hardly change, the scores do.
  const compress::Loss sure = LossOf(5, softmax, "1");
  CHECK(sure.noise < 1e-3);
  CHECK(sure.noise_of_scores > 10 * sure.noise);
  CHECK(sure.cost() == sure.noise_of_scores);
  // Whether a probability is 1e-6 or 1e-9 does not matter.
  CHECK(LossOf(14, softmax, "-7").noise_of_scores < 1e-6);
  // The scores of a sigmoid are its operand.
  CHECK(LossOf(2, "sigmoid(x = s)", "1").noise_of_scores == Approx(1 / (8. / 3)).epsilon(1e-3));
}

TEST_CASE("loss: other outputs count as they are") {
  const compress::Loss loss = LossOf(5, "relu(x = s)", "1");
  CHECK(loss.noise > 0);
  CHECK(loss.noise_of_scores == loss.noise);
}

TEST_CASE("loss: the error of a single number is relative to its variance over samples") {
  auto program = [](const char* factor) {
    return ParseText(fmt::format(R"(func main<ios16>(tensor<fp32, [1]> x) {{
  y = mul(x = x, y = const fp32({}));
}} -> (y);)",
                                 factor),
                     "test.mil", Ops());
  };
  Samples samples;
  for (const float value : {1.F, 2.F, 3.F})
    samples.functions["main"].push_back({{{"x", Tensor::Of({1}, std::vector<float>{value})}}});
  EndToEndLoss loss(samples, 10, {});
  loss(program("1"));
  const compress::Loss made = loss(program("1.5"));
  // The squares of 0.5, 1, 1.5 relative to those of -1, 0, 1.
  CHECK(made.noise == Approx(3.5 / 2));
  CHECK(made.noise_of_scores == made.noise);
  CHECK(made.peak == Approx(0.5));
}
