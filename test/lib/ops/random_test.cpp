// Random operators: shape, distribution, and dependence on the seed only. Tolerances are five
// standard errors of 100,000 samples.
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

namespace mlc::test {
namespace {

constexpr int32_t kDraws = 100'000;

In Seed(int32_t seed) { return {"seed", Tensor::Scalar<int32_t>(seed)}; }

struct Moments {
  double mean = 0, variance = 0, low = kInf, high = -kInf;
};
Moments MomentsOf(const Tensor& tensor) {
  Moments m;
  std::vector<double> values = tensor.Doubles();
  for (double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (double v : values)
    m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  return m;
}

TEST_CASE("random_normal: mean and standard deviation") {
  Tensor y = Evaluate("random_normal", {{"shape", I32({2}, {100, kDraws / 100})},
                                        {"mean", Tensor::Scalar(3.0f)},
                                        {"stddev", Tensor::Scalar(2.0f)},
                                        Seed(7)});
  CHECK(y.dims() == Dims{100, kDraws / 100});
  Moments m = MomentsOf(y);
  CHECK(std::fabs(m.mean - 3) < 5 * 2 / std::sqrt(kDraws));
  CHECK(std::fabs(m.variance - 4) < 5 * 4 * std::sqrt(2.0 / kDraws));
  int inside = 0;  // of one standard deviation: 68.27 %
  for (double v : y.Doubles()) inside += std::fabs(v - 3) < 2;
  CHECK(std::fabs(inside / double(kDraws) - 0.6827) < 5 * 0.466 / std::sqrt(kDraws));
}

TEST_CASE("random_uniform: uniform over [low, high)") {
  for (DType dtype : {DType::kFp32, DType::kFp16}) {
    Tensor y = Evaluate("random_uniform", {{"shape", I32({1}, {kDraws})},
                                           {"low", Tensor::Full(dtype, {}, -1)},
                                           {"high", Tensor::Full(dtype, {}, 2)},
                                           Seed(1)});
    CHECK(y.dtype() == dtype);
    Moments m = MomentsOf(y);
    CHECK(m.low >= -1);
    CHECK(m.high < 2);
    CHECK(std::fabs(m.mean - 0.5) < 5 * 0.866 / std::sqrt(kDraws));
    CHECK(std::fabs(m.variance - 0.75) < 0.01);
  }
}

TEST_CASE("random_bernoulli: probability of 1") {
  Tensor y = Evaluate("random_bernoulli",
                      {{"shape", I32({1}, {kDraws})}, {"prob", Tensor::Scalar(0.2f)}, Seed(1)});
  Moments m = MomentsOf(y);
  CHECK(std::fabs(m.mean - 0.2) < 5 * 0.4 / std::sqrt(kDraws));
  CHECK(std::fabs(m.variance - m.mean * (1 - m.mean)) < 1e-9);  // only 0 and 1 occur
}

TEST_CASE("random_categorical: samples by the weights of each row") {
  for (bool logits : {false, true}) {
    std::vector<float> weights = {0.5f, 0.25f, 0.25f, 0, 0, 1};
    if (logits)
      for (float& w : weights) w = std::log(w) + 3;
    Tensor y =
        Evaluate("random_categorical", {{"x", F32({2, 3}, weights)},
                                        {"mode", Tensor::String(logits ? "logits" : "probs")},
                                        {"size", Tensor::Scalar<int32_t>(kDraws)},
                                        Seed(5)});
    REQUIRE(y.dims() == Dims{2, kDraws});
    double count[2][3] = {};
    for (int64_t i = 0; i < y.size(); ++i) ++count[i / kDraws][static_cast<int>(y.Double(i))];
    CHECK(std::fabs(count[0][0] / kDraws - 0.5) < 5 * 0.5 / std::sqrt(kDraws));
    CHECK(std::fabs(count[0][1] / kDraws - 0.25) < 5 * 0.433 / std::sqrt(kDraws));
    CHECK(count[1][2] == kDraws);
  }
}

TEST_CASE("random operators: numbers are determined by the seed") {
  auto draw = [](int32_t seed) {
    return Evaluate("random_uniform", {{"shape", I32({1}, {9})}, Seed(seed)}).Doubles();
  };
  CHECK(draw(3) == draw(3));
  CHECK(draw(3) != draw(4));
}

TEST_CASE("random_uniform: first numbers are the words of Philox") {
  // Philox4x32-10 for counter 0 and key 0, as published by its authors (Random123, kat_vectors).
  std::vector<double> y = Evaluate("random_uniform", {{"shape", I32({1}, {4})}, Seed(0)}).Doubles();
  CHECK(y == std::vector<double>{0x6627e8 * 0x1p-24, 0xe169c5 * 0x1p-24, 0xbc57ac * 0x1p-24,
                                 0x9b00db * 0x1p-24});
}

TEST_CASE("random operators: bad operands") {
  auto error = [](std::string_view op, const std::vector<In>& in) {
    return RefusalId([&] { Infer(op, in); });
  };
  CHECK(error("random_normal", {{"shape", I32({1}, {-1})}}) == "bad-operand");
  CHECK(error("random_normal", {{"shape", I32({1, 1}, {1})}}) == "bad-operand");
  CHECK(error("random_categorical", {{"x", F32({}, {1})}}) == "bad-operand");
  CHECK(error("random_categorical", {{"x", F32({1}, {1})}, {"mode", Tensor::String("odds")}}) ==
        "bad-operand");
}

TEST_CASE("classify: label of the highest probability") {
  std::vector<In> in = {{"probabilities", F32({1, 3}, {0.1f, 0.7f, 0.2f})},
                        {"classes", Tensor::Strings({3}, {"cat", "dog", "eel"})}};
  InferContext inferred = Infer("classify", in);
  REQUIRE(inferred.results.size() == 2);
  CHECK(inferred.results[0].dtype == DType::kString);
  CHECK(inferred.results[1].kind == Type::Kind::kDict);
  const OpDef& def = Ops().At("classify");
  EvalContext context(def, ArgsOf(def, in), inferred.results);
  def.eval(context);
  CHECK(context.results[0].strings()[0] == "dog");
  CHECK(Near(context.results[1].Doubles(), {0.1, 0.7, 0.2}, 1e-7));
  in[1] = {"classes", I64({2}, {4, 5})};
  CHECK_THROWS_AS(Infer("classify", in), Error);
}

TEST_CASE("random: range rules are sound", "[traits]") {
  CheckRange("random_bernoulli", [](Draw& draw, DType dtype) -> Case {
    return {{"shape", Ints32({5})}, {"prob", draw.Between({}, dtype, 0, 1)}, {"seed", Number(3)}};
  });
  CheckRange("random_categorical", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Between({2, 3}, dtype, -2, 2)}, {"size", Number(5)}, {"seed", Number(3)}};
  });
  CheckRange("random_uniform", [](Draw& draw, DType dtype) -> Case {
    return {{"shape", Ints32({5})},
            {"low", draw.Between({}, dtype, -2, 0)},
            {"high", draw.Between({}, dtype, 1, 2)},
            {"seed", Number(draw.Int(0, 1000))}};
  });
}

}  // namespace
}  // namespace mlc::test
