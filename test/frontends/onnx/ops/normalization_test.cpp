// Expected values are computed by hand from the operator specifications.
#include <cmath>

#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

void CheckValues(const Tensor& tensor, const std::vector<double>& expected) {
  std::vector<double> values = tensor.Doubles();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("onnx LRN: the larger half of an even window is after the channel") {
  std::string model =
      Model({Node("LRN", {"x"}, {"y"},
                  {Int("size", 2), Float("alpha", 2), Float("beta", 1), Float("bias", 1)})},
            {Info("x", kFloat, {1, 3, 1, 1})}, {Info("y")});
  // x / (1 + x^2 + next^2)
  CheckValues(RunOnnx(model, {{"x", Tensor::Of<float>({1, 3, 1, 1}, {1, 2, 3})}}),
              {1.0 / 6, 2.0 / 14, 3.0 / 10});
}

TEST_CASE("onnx BatchNormalization: training_mode uses the statistics of the batch") {
  std::string model =
      Model({Node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n", "y", "w"},
                  {Int("training_mode", 1), Float("momentum", 0.75), Float("epsilon", 0)})},
            {Info("x", kFloat, {2, 1})}, {Info("n"), Info("y"), Info("w")},
            {Proto<float>("s", {1}, {3}), Proto<float>("b", {1}, {1}), Proto<float>("m", {1}, {2}),
             Proto<float>("v", {1}, {8})},
            15);
  Program program = ImportBytes(model);
  auto out = engine::Execute(program, {{"x", Tensor::Of<float>({2, 1}, {4, 8})}},
                             {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
  CheckValues(out.at("n"), {-2, 4});
  CheckValues(out.at("y"), {2 * 0.75 + 6 * 0.25});
  CheckValues(out.at("w"), {8 * 0.75 + 4 * 0.25});
}

TEST_CASE("onnx com.microsoft: EmbedLayerNormalization without a second output") {
  std::string model =
      Model({Node("EmbedLayerNormalization", {"x", "", "words", "places", "", "g", "b"}, {"y"},
                  {Float("epsilon", 0)}, "com.microsoft")},
            {Info("x", kInt32, {1, 1})}, {Info("y")},
            {Proto<float>("words", {2, 2}, {0, 0, 1, 4}), Proto<float>("places", {1, 2}, {1, 0}),
             Proto<float>("g", {2}, {1, 2}), Proto<float>("b", {2}, {0, 1})});
  CheckValues(RunOnnx(model, {{"x", Tensor::Of<int32_t>({1, 1}, {1})}}), {-1, 3});
}

TEST_CASE("onnx com.microsoft: activations of FusedGemm") {
  std::string model =
      Model({Node("FusedGemm", {"x", "w"}, {"y"},
                  {Text("activation", "Elu"), Float("activation_alpha", 0.5)}, "com.microsoft")},
            {Info("x", kFloat, {1, 1})}, {Info("y")}, {Proto<float>("w", {1, 2}, {1, -1})});
  CheckValues(RunOnnx(model, {{"x", Tensor::Of<float>({1, 1}, {1})}}),
              {1, 0.5 * (std::exp(-1.0) - 1)});
}

}  // namespace
}  // namespace mlc::test
