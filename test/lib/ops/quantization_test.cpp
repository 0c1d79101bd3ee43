#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

TEST_CASE("quantize: ties to even, saturation") {
  // coremltools 9.1 value inference
  Tensor x = F32({2, 3}, {-1.5, 0, 0.3f, 0.25, 0.75, 200});
  const In int8{"output_dtype", Tensor::String("int8")},
      uint8{"output_dtype", Tensor::String("uint8")};
  CHECK(Evaluate("quantize", {{"input", x},
                              {"scale", F32({}, {0.5})},
                              {"zero_point", Tensor::Scalar<int8_t>(3)},
                              int8})
            .Ints() == Ints64{0, 3, 4, 3, 5, 127});
  CHECK(Evaluate("quantize", {{"input", x},
                              {"scale", F32({2}, {0.5, 2})},
                              {"zero_point", Tensor::Vector<uint8_t>({1, 128})},
                              {"axis", I32({}, {0})},
                              uint8})
            .Ints() == Ints64{0, 1, 2, 128, 128, 228});
  // hand calculation
  CHECK(Evaluate("quantize",
                 {{"input", F32({3}, {INFINITY, -INFINITY, -0.5})}, {"scale", F32({}, {1})}, int8})
            .Ints() == Ints64{127, -128, 0});
  CHECK_THROWS_WITH(Evaluate("quantize", {{"input", x}, {"scale", F32({2}, {1, 1})}, int8}),
                    ContainsSubstring("axis"));
  CHECK_THROWS_WITH(Evaluate("quantize", {{"input", x},
                                          {"scale", F32({}, {1})},
                                          {"zero_point", Tensor::Scalar<int8_t>(3)},
                                          uint8}),
                    ContainsSubstring("output_dtype"));
}

TEST_CASE("dequantize: per tensor and along an axis") {
  // coremltools 9.1 value inference
  Tensor x = Tensor::Of<int8_t>({2, 3}, {-128, 0, 3, 5, -7, 127});
  Tensor y = Evaluate("dequantize", {{"input", x},
                                     {"scale", F32({3}, {0.5, 2, 0.1f})},
                                     {"zero_point", Tensor::Vector<int8_t>({1, -1, 0})},
                                     {"axis", I32({}, {1})}});
  CHECK(Near(y.Doubles(), {-64.5, 2, 0.3, 2, -12, 12.7}, 1e-6));
  // hand calculation
  Tensor half = Evaluate("dequantize", {{"input", Tensor::Vector<uint8_t>({0, 255})},
                                        {"scale", F16({}, {0.5})},
                                        {"zero_point", Tensor::Scalar<uint8_t>(128)}});
  CHECK(half.dtype() == DType::kFp16);
  CHECK(Near(half.Doubles(), {-64, 63.5}, 0));
  CHECK_THROWS_WITH(
      Evaluate("dequantize", {{"input", x}, {"scale", F32({2}, {1, 1})}, {"axis", I32({}, {1})}}),
      ContainsSubstring("3 elements"));
}

TEST_CASE("quantization: range rules are sound", "[traits]") {
  CheckRange("dequantize", [](Draw& draw, DType dtype) -> Case {
    return {{"input", draw.Between({4, 3}, DType::kInt8, -128, 127)},
            {"zero_point", draw.Between({}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({}, dtype, -2, 2)}};
  });
  CheckRange("quantize", [](Draw& draw, DType dtype) -> Case {
    return {{"input", draw.Numbers({4, 3}, dtype)},
            {"scale", draw.Between({}, dtype, 0.01, 2)},
            {"output_dtype", Text(draw.Of<std::string_view>({"int8", "uint8"}))}};
  });
}
