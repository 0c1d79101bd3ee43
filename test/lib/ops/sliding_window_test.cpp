#include "lib/ops/sliding_window.h"

#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

namespace mlc::test {
namespace {

Type F(Shape shape) { return Type::Tensor(DType::kFp32, std::move(shape)); }
Tensor Str(const char* text) { return Tensor::String(text); }

Shape OutOf(std::string_view op, const std::vector<In>& in) {
  return Infer(op, in).results.at(0).shape;
}

TEST_CASE("windows over symbolic sizes") {
  Dim h = Dim::Symbol("h"), w = Dim::Symbol("w");
  In x{"x", F({1, 3, h, w})}, weight{"weight", F({8, 3, 3, 5})},
      strides{"strides", I32({2}, {1, 2})};
  SECTION("custom") {
    Shape y = OutOf(
        "conv", {x, weight, strides, {"pad_type", Str("custom")}, {"pad", I32({4}, {1, 1, 2, 0})}});
    CHECK(y[2] == h);
    CHECK(y[3] == FloorDiv(w - 3, 2) + 1);
  }
  SECTION("same") {
    Shape y = OutOf("conv", {x, weight, strides, {"pad_type", Str("same")}});
    CHECK(y[2] == h);
    CHECK(y[3] == CeilDiv(w, 2));
  }
  SECTION("pool with ceil_mode agrees with the static rule") {
    for (int64_t n = 3; n < 12; ++n) {
      std::vector<In> rest = {{"kernel_sizes", I32({1}, {3})},
                              {"strides", I32({1}, {2})},
                              {"pad_type", Str("custom")},
                              {"pad", I32({2}, {1, 1})},
                              {"ceil_mode", Tensor::Scalar<bool>(true)}};
      std::vector<In> symbolic = rest, fixed = rest;
      symbolic.push_back({"x", F({1, 1, h})});
      fixed.push_back({"x", F({1, 1, n})});
      std::optional<int64_t> size = OutOf("max_pool", symbolic)[2].Evaluate({{"h", n}});
      // torch: ceil((n + 2 - 3) / 2) + 1, minus one if the last window starts at or after n + 1
      int64_t expected = (n - 1 + 1) / 2 + 1;
      if ((expected - 1) * 2 >= n + 1) --expected;
      CHECK(size == expected);
      CHECK(OutOf("max_pool", fixed)[2] == Dim(expected));
    }
  }
  SECTION("transposed") {
    Shape y =
        OutOf("conv_transpose", {x, {"weight", F({3, 4, 3, 3})}, {"strides", I32({2}, {2, 2})}});
    CHECK(y[1] == Dim(4));
    CHECK(y[2] == h * 2 + 1);
  }
}

TEST_CASE("windows that do not fit are rejected") {
  auto fails = [](std::string_view op, const std::vector<In>& in, const std::string& text) {
    INFO(text);
    CHECK_THROWS_WITH(Infer(op, in), ContainsSubstring(text));
  };
  In x{"x", F({1, 4, 8, 8})}, w{"weight", F({6, 4, 3, 3})}, custom{"pad_type", Str("custom")};
  fails("conv", {x, {"weight", F({6, 4, 9, 3})}}, "the window does not fit");
  fails("conv", {x, {"weight", F({6, 3, 3, 3})}}, "times groups");
  fails("conv", {x, {"weight", F({6, 1, 3, 3})}, {"groups", Tensor::Scalar<int32_t>(4)}},
        "not divisible");
  fails("conv", {x, w, {"groups", Tensor::Scalar<int32_t>(0)}}, "groups is 0");
  fails("conv", {x, w, {"strides", I32({2}, {0, 1})}}, "strides contains 0");
  fails("conv", {x, w, {"strides", I32({1}, {1})}}, "strides has 1 elements, expected 2");
  fails("conv", {x, w, {"dilations", I32({2}, {-1, 1})}}, "dilations contains -1");
  fails("conv", {x, w, custom, {"pad", I32({4}, {2147483647, 0, 0, 0})}},
        "pad contains 2147483647");
  fails("conv", {x, w, custom, {"pad", I32({4}, {-1, 0, 0, 0})}}, "pad contains -1");
  fails("conv", {x, w, {"pad_type", Str("full")}}, "pad_type is \"full\"");
  fails("conv", {x, w, {"bias", F({5})}}, "bias");
  fails("conv", {{"x", F({1, 4})}, w}, "expected 3 to 5");
  fails("max_pool", {x, {"kernel_sizes", I32({2}, {0, 2})}, {"pad_type", Str("valid")}},
        "kernel_sizes contains 0");
  fails("max_pool",
        {x,
         {"kernel_sizes", I32({2}, {2, 2})},
         {"pad_type", Str("same")},
         {"ceil_mode", Tensor::Scalar<bool>(true)}},
        "ceil_mode");
  fails("conv_transpose", {x, {"weight", F({3, 4, 3, 3})}}, "first dimension of weight");
  fails("conv_transpose",
        {x, {"weight", F({4, 4, 1, 1})}, {"output_shape", I32({4}, {1, 5, 8, 8})}}, "output_shape");
  CHECK_THROWS_AS(Infer("conv", {x, w, {"strides", Type::Tensor(DType::kInt32, {2})}}), Error);
}

TEST_CASE("computed defaults of windows") {
  std::vector<In> in = {{"x", F({1, 4, 8, 8})}, {"weight", F({6, 4, 3, 3})}};
  InferContext context(Ops().At("conv"), ArgsOf(Ops().At("conv"), in));
  CHECK(context.value("pad").Ints() == std::vector<int64_t>{0, 0, 0, 0});
  CHECK(context.value("strides").Ints() == std::vector<int64_t>{1, 1});
  CHECK(context.value("dilations").dtype() == DType::kInt32);
}

// Sums are exact in double and rounded once; with fp16 steps, 2048 + 1 + 1 would stay 2048.
TEST_CASE("fp16 results are rounded once") {
  Tensor y =
      Evaluate("linear", {{"x", F16({1, 3}, {2048, 1, 1})}, {"weight", F16({1, 3}, {1, 1, 1})}});
  CHECK(y.dtype() == DType::kFp16);
  CHECK(y.Double(0) == 2050);
}

TEST_CASE("matmul: integers wrap and keep their dtype") {
  Tensor y = Evaluate("matmul", {{"x", I32({1, 2}, {65536, 3})}, {"y", I32({2, 1}, {65536, 5})}});
  CHECK(y.dtype() == DType::kInt32);
  CHECK(y.Int(0) == 15);  // 2^32 + 15
  CHECK(Evaluate("matmul", {{"x", I64({1, 1}, {1ll << 40})}, {"y", I64({1, 1}, {3})}}).Int(0) ==
        3ll << 40);
}

TEST_CASE("matmul: a constant does not determine the result dtype") {
  In x{"x", F16({1, 2}, {1, 2})}, y{"y", F({2, 1})};
  CHECK(Infer("matmul", {x, y}).results[0].dtype == DType::kFp32);
  CHECK_THROWS_WITH(
      Infer("matmul",
            {{"x", F({3})}, {"y", F({3, 1})}, {"transpose_x", Tensor::Scalar<bool>(true)}}),
      ContainsSubstring("vector"));
}

// numpy.einsum("nchw,nwhu->nchu") of ones with broadcast h: sums over w.
TEST_CASE("einsum") {
  Tensor x = Tensor::Full(DType::kFp32, {2, 3, 1, 4}, 1),
         y = Tensor::Full(DType::kFp32, {2, 4, 5, 6}, 2);
  Tensor z =
      Evaluate("einsum", {{"values", x}, {"values", y}, {"equation", Str("nchw,nwhu->nchu")}});
  CHECK(z.dims() == Dims{2, 3, 5, 6});
  CHECK(z.Double(17) == 8);
  CHECK_THROWS_WITH(
      Infer("einsum", {{"values", x}, {"values", y}, {"equation", Str("nchw,nwhu->nhcu")}}),
      ContainsSubstring("Core ML does not support equation"));
}

Case Pooled(Draw& draw) {
  return {{"x", draw.Image()},
          {"kernel_sizes", draw.Whole({2}, 1, 3)},
          {"strides", draw.Whole({2}, 1, 2)},
          {"pad_type", Text(draw.Of<std::string_view>({"valid", "same"}))}};
}
Case Convolution(Draw& draw, bool transposed) {
  int64_t groups = draw.Int(1, 2), in = 2 * groups, out = 2 * groups;
  Tensor x = draw.Image(in);
  Dims weight = transposed ? Dims{in, out / groups, 3, 2} : Dims{out, in / groups, 3, 2};
  Case operands = {{"x", x},
                   {"weight", draw.Numbers(weight, x.dtype())},
                   {"groups", Number(groups)},
                   {"pad_type", Text("custom")},
                   {"pad", Ints32({1, 1, 0, 1})},
                   {"strides", draw.Whole({2}, 1, 2)}};
  if (draw.Coin()) operands.emplace_back("bias", draw.Numbers({out}, x.dtype()));
  return operands;
}

TEST_CASE("window: range rules are sound", "[traits]") {
  CheckRange("conv", [](Draw& draw, DType) -> Case { return Convolution(draw, false); });
  CheckRange("conv_transpose", [](Draw& draw, DType) -> Case { return Convolution(draw, true); });
  CheckRange("avg_pool", [](Draw& draw, DType) -> Case { return Pooled(draw); });
  CheckRange("l2_pool", [](Draw& draw, DType) -> Case { return Pooled(draw); });
  CheckRange("max_pool", [](Draw& draw, DType) -> Case { return Pooled(draw); });
}

}  // namespace
}  // namespace mlc::test
