// Cast to bfloat16 and back. Expected values are the upper 16 bits of fp32 values.
#include <bit>
#include <cmath>
#include <limits>

#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

constexpr int kBfloat16 = 16;

std::vector<float> ThroughBfloat16(const std::vector<float>& x, int opset) {
  std::string model =
      Model({Node("Cast", {"x"}, {"b"}, {Int("to", kBfloat16)}),
             Node("Cast", {"b"}, {"y"}, {Int("to", kFloat)})},
            {Info("x", kFloat, {static_cast<int>(x.size())})}, {Info("y")}, {}, opset);
  std::vector<double> y = RunOnnx(model, {{"x", Tensor::Vector(x)}}).Doubles();
  return {y.begin(), y.end()};
}

TEST_CASE(
    "onnx Cast: run-time conversion to bfloat16 rounds to nearest, and truncates before opset 19") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0,        1.00390625f, 1.01171875f, -1.0039064f, 0.48033667f, 1.9999999f,
                          65504.0f, 1e-30f,      -1e30f,      kInfinity,   -kInfinity};
  std::vector<float> nearest = ThroughBfloat16(x, 19), cut = ThroughBfloat16(x, 13);
  for (size_t i = 0; i < x.size(); ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    CHECK(std::bit_cast<uint32_t>(cut[i]) == (bits & 0xffff0000));
    uint32_t even = (bits >> 16 & 1) + 0x7fff;
    CHECK(std::bit_cast<uint32_t>(nearest[i]) == ((bits + even) & 0xffff0000));
  }
  CHECK(std::isnan(ThroughBfloat16({std::nanf("")}, 19)[0]));
}

}  // namespace
}  // namespace mlc::test
