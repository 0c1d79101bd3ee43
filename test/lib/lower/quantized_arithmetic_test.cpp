// Quantised tensors; expected values are calculated by hand or from ONNX's examples.
#include "lib/lower/quantized_arithmetic.h"

#include "test/lib/lower/run_lowered.h"

namespace mlc::test {
using namespace lower;
namespace {

using Values = std::vector<Value*>;
using Doubles = std::vector<double>;
using Longs = std::vector<int64_t>;

Tensor U8(Dims dims, const std::vector<uint8_t>& values) {
  return Tensor::Of(std::move(dims), values);
}

TEST_CASE("lower: run-time integers are dequantised") {
  Tensor x = I32({2, 4}, {0, 1, 2, 3, 100, 101, 200, 255});
  auto made = Lowered({x, F32({2}, {0.5, 2}), I32({2}, {1, 100})}, [](Builder& b,
                                                                      const Values& in) {
    Scheme rows{.scale = in[1], .zero = in[2], .axis = -2};
    Scheme one{.scale = b.Const(F32({1}, {3})), .zero = nullptr};
    Scheme blocks{
        .scale = b.Const(F32({2, 2}, {1, 2, 3, 4})), .zero = nullptr, .axis = 1, .block = 2};
    Scheme shorter{
        .scale = b.Const(F32({2, 2}, {1, 2, 3, 4})), .zero = nullptr, .axis = 1, .block = 3};
    return Values{Dequantize(b, in[0], rows, DType::kFp32), Dequantize(b, in[0], one, DType::kFp32),
                  Dequantize(b, in[0], blocks, DType::kFp32),
                  Dequantize(b, in[0], shorter, DType::kFp32)};
  });
  CHECK(made[0].Doubles() == Doubles{-0.5, 0, 0.5, 1, 0, 2, 200, 310});
  CHECK(made[1].Doubles() == Doubles{0, 3, 6, 9, 300, 303, 600, 765});
  CHECK(made[2].Doubles() == Doubles{0, 1, 4, 6, 300, 303, 800, 1020});
  CHECK(made[3].Doubles() == Doubles{0, 1, 2, 6, 300, 303, 600, 1020});
}

TEST_CASE("lower: a dequantised constant keeps its encoding") {
  Lowered({F32({1}, {0})}, [](Builder& b, const Values& in) {
    Scheme scheme{
        .scale = b.Const(F32({2}, {0.5, 2})), .zero = b.Const(U8({2}, {1, 2})), .axis = 0};
    Value* y = Dequantize(b, b.Const(U8({2, 2}, {0, 1, 2, 3})), scheme, DType::kFp16);
    REQUIRE(y->is_constant());
    CHECK(y->constant().encoding() != nullptr);
    CHECK(y->constant().Doubles() == Doubles{-0.5, 0, 0, 2});
    return in;
  });
}

TEST_CASE("lower: quantisation rounds to nearest even and saturates") {
  Tensor x = F32({6}, {-1, 0.25, 0.75, 1.25, 100, -100});
  auto quantized = [](Builder& b, const Values& in, Opset target, DType integers) {
    Scheme scheme{.scale = b.Const(F32({}, {0.5})),
                  .zero = b.Const(Tensor::Full(integers, {}, 10)),
                  .integers = integers,
                  .target = target};
    return Quantize(b, in[0], scheme);
  };
  auto made = Lowered({x}, [&](Builder& b, const Values& in) {
    Value* native = quantized(b, in, Opset::kIos17, DType::kInt8);
    CHECK(native->def->is("quantize"));
    Value* older = quantized(b, in, Opset::kIos16, DType::kUint8);
    CHECK(older->type.dtype == DType::kInt32);
    return Values{b.Cast(native, DType::kInt32), older};
  });
  CHECK(made[0].Ints() == Longs{8, 10, 12, 12, 127, -128});
  CHECK(made[1].Ints() == Longs{8, 10, 12, 12, 210, 0});
}

// The example of ONNX's DynamicQuantizeLinear.
TEST_CASE("lower: dynamic quantisation covers the range of the tensor and 0") {
  auto made = Lowered({F32({6}, {0, 2, -3, -2.5, 1.34f, 0.5})}, [](Builder& b, const Values& in) {
    DynamicallyQuantized y = QuantizeDynamically(b, in[0]);
    return Values{y.steps, y.scale, y.zero};
  });
  CHECK(made[0].Doubles() == Doubles{153, 255, 0, 26, 221, 179});
  CheckNear(made[1], {0.0196078438}, 1e-9);
  CHECK(made[2].Doubles() == Doubles{153});
}

TEST_CASE("lower: centred factors and requantised sums") {
  auto made = Lowered({I32({3}, {0, 7, 255}), I32({}, {100})}, [](Builder& b, const Values& in) {
    Factor centered = Centered(b, in[0], in[1], DType::kUint8);
    CHECK(centered.most == 255);
    Factor known = Centered(b, in[0], b.Const(U8({}, {100})), DType::kUint8);
    CHECK(known.most == 155);
    Value *scale = b.Const(F32({}, {0.5})), *zero = b.Const(U8({}, {3}));
    int looked = 0;
    auto fits = [&](Value* changed, Value*) { return ++looked, changed; };
    Value* back = Requantize(b, in[0], scale, zero, DType::kInt8, fits);
    CHECK(looked == 1);
    return Values{centered.value, known.value, back};
  });
  CHECK(made[0].Doubles() == Doubles{-100, -93, 155});
  CHECK(made[1].Doubles() == Doubles{-100, -93, 155});
  CHECK(made[2].Ints() == Longs{3, 7, 127});  // 3.5 is a midpoint of 3 and 4
}

TEST_CASE("lower: mismatched scales are rejected") {
  auto refusal = [](Dims scale, int64_t axis, int64_t block) {
    return RefusalId([&] {
      Lowered({I32({2, 4}, std::vector<int32_t>(8)),
               F32(scale, std::vector<float>(ElementCount(scale)))},
              [&](Builder& b, const Values& in) {
                Scheme scheme{.scale = in[1], .axis = axis, .block = block};
                return Values{Dequantize(b, in[0], scheme, DType::kFp32)};
              });
    });
  };
  CHECK(refusal({2, 2}, 1, 0) == "bad-operand");
  CHECK(refusal({2}, 2, 0) == "bad-operand");
  CHECK(refusal({2, 2}, 1, 4) == "bad-operand");
  CHECK(refusal({1, 2}, 1, 2) == "bad-operand");
  CHECK(RefusalId([] { FloatType(DType::kInt8); }) == "unsupported-dtype");
}

}  // namespace
}  // namespace mlc::test
