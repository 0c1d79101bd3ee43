#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

using namespace mlc;
using namespace mlc::test;

TEST_CASE("reductions: over some axes and all axes") {
  Tensor x = F64({2, 2, 3}, {1, -2, 3, 4, 5, -6, 0.5, 0.25, 2, -1, 1, 8});
  struct Case {
    const char* op;
    std::vector<double> over02, over1, all;  // numpy 1.24, logsumexp: scipy 1.10
  };
  const std::vector<Case> cases = {
      {"reduce_l1_norm", {8.75, 25}, {5, 7, 9, 1.5, 1.25, 10}, {33.75}},
      {"reduce_l2_norm",
       {4.2793106921559225, 11.958260743101398},
       {4.1231056256176606, 5.3851648071345037, 6.7082039324993694, 1.1180339887498949,
        1.0307764064044151, 8.2462112512353212},
       {12.700885795880538}},
      {"reduce_log_sum_exp",
       {3.5043842412764841, 8.0668534931662084},
       {4.0485873515737421, 5.0009114664537746, 3.0001234021897232, 0.70141327798275244,
        1.3868710061148999, 8.0024756851377301},
       {8.077235668734323}},
      {"reduce_max", {3, 8}, {4, 5, 3, 0.5, 1, 8}, {8}},
      {"reduce_mean",
       {0.79166666666666663, 1.8333333333333333},
       {2.5, 1.5, -1.5, -0.25, 0.625, 5},
       {1.3125}},
      {"reduce_min", {-2, -6}, {1, -2, -6, -1, 0.25, 2}, {-6}},
      {"reduce_prod", {-1.5, 960}, {4, -10, -18, -0.5, 0.25, 16}, {-1440}},
      {"reduce_sum", {4.75, 11}, {5, 3, -3, -0.5, 1.25, 10}, {15.75}},
      {"reduce_sum_square", {18.3125, 143}, {17, 29, 45, 1.25, 1.0625, 68}, {161.3125}},
  };
  for (const Case& each : cases) {
    INFO(each.op);
    CHECK(Near(Evaluate(each.op, {{"x", x}, {"axes", I32({2}, {0, -1})}}).Doubles(), each.over02,
               1e-15));
    CHECK(
        Near(Evaluate(each.op, {{"x", x}, {"axes", I32({1}, {1})}}).Doubles(), each.over1, 1e-15));
    CHECK(Near(Evaluate(each.op, {{"x", x}}).Doubles(), each.all, 1e-15));
  }
  Tensor magnitudes = Evaluate("abs", {{"x", x}});
  CHECK(Near(Evaluate("reduce_log_sum", {{"x", magnitudes}, {"axes", I32({2}, {2, 0})}}).Doubles(),
             {2.1690537003695232, 3.2188758248682006}, 1e-15));
}

TEST_CASE("reductions: shapes") {
  Tensor x = F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), keep = Tensor::Scalar<bool>(true);
  CHECK(Evaluate("reduce_sum", {{"x", x}}).dims() == Dims{});
  CHECK(Evaluate("reduce_sum", {{"x", x}, {"keep_dims", keep}}).dims() == Dims{1, 1, 1});
  CHECK(Evaluate("reduce_sum", {{"x", x}, {"axes", I32({1}, {-1})}, {"keep_dims", keep}}).dims() ==
        Dims{2, 1, 1});
  CHECK(Evaluate("reduce_sum", {{"x", x}, {"axes", I32({0}, {})}}).Doubles() == x.Doubles());
  CHECK_THROWS_WITH(Evaluate("reduce_sum", {{"x", x}, {"axes", I32({1}, {3})}}),
                    ContainsSubstring("axis 3"));
  Dim n = Dim::Symbol("n");
  CHECK(Infer("reduce_max", {{"x", Type::Tensor(DType::kFp32, {n, 3, n})}, {"axes", I32({1}, {1})}})
            .results[0]
            .shape == Shape{n, n});
}

TEST_CASE("reductions: integers") {
  constexpr int64_t kBig = (int64_t{1} << 53) + 1;
  CHECK(Evaluate("reduce_sum", {{"x", I64({3}, {kBig, kBig, 1})}}).Int(0) == 2 * kBig + 1);
  CHECK(Evaluate("reduce_max", {{"x", I64({2}, {kBig - 1, kBig})}}).Int(0) == kBig);
  CHECK(Evaluate("reduce_prod", {{"x", I32({2}, {65536, 65537})}}).Int(0) ==
        65536);  // 2^32 + 2^16 wraps
  CHECK(Evaluate("reduce_l1_norm", {{"x", I32({3}, {-3, 2, -1})}}).Int(0) == 6);
  // coremltools 9.1 value inference: truncated
  Tensor x = I32({2, 2}, {1, -2, -5, 2}), axes = I32({1}, {1});
  CHECK(Evaluate("reduce_mean", {{"x", x}, {"axes", axes}}).Ints() == Ints64{0, -1});
  CHECK(Evaluate("reduce_l2_norm", {{"x", x}, {"axes", axes}}).Ints() == Ints64{2, 5});
}

TEST_CASE("reductions: empty reductions") {
  Tensor x = F32({2, 0}, {}), axes = I32({1}, {1});
  auto over = [&](const char* op) { return Evaluate(op, {{"x", x}, {"axes", axes}}).Doubles(); };
  // numpy 1.24; extrema: ONNX ReduceMax-20 and ReduceMin-20
  CHECK(Near(over("reduce_sum"), {0, 0}, 0));
  CHECK(Near(over("reduce_prod"), {1, 1}, 0));
  CHECK(Near(over("reduce_mean"), {kNaN, kNaN}, 0));
  CHECK(Near(over("reduce_log_sum"), {-kInf, -kInf}, 0));
  CHECK(Near(over("reduce_log_sum_exp"), {-kInf, -kInf}, 0));
  CHECK(Near(over("reduce_max"), {-kInf, -kInf}, 0));
  CHECK(Near(over("reduce_min"), {kInf, kInf}, 0));
  CHECK(Evaluate("reduce_min", {{"x", I32({0}, {})}}).Int(0) ==
        std::numeric_limits<int32_t>::max());
}

TEST_CASE("reductions: NaN, infinity, large numbers") {
  // numpy 1.24, logsumexp: torch 1.13
  CHECK(Near(Evaluate("reduce_max", {{"x", F32({3}, {1, NAN, 2})}}).Doubles(), {kNaN}, 0));
  CHECK(Near(Evaluate("reduce_min", {{"x", F32({3}, {NAN, 1, 2})}}).Doubles(), {kNaN}, 0));
  CHECK(Near(Evaluate("reduce_log_sum_exp", {{"x", F32({2}, {1000, 1000})}}).Doubles(),
             {1000.6931471805599}, 1e-7));
  CHECK(Near(Evaluate("reduce_log_sum_exp", {{"x", F32({2}, {-INFINITY, -INFINITY})}}).Doubles(),
             {-kInf}, 0));
  CHECK(
      Near(Evaluate("reduce_log_sum_exp", {{"x", F32({2}, {1, INFINITY})}}).Doubles(), {kInf}, 0));
  CHECK(Near(Evaluate("reduce_sum", {{"x", F16({2}, {65504, 65504})}}).Doubles(), {kInf}, 0));
  CHECK(Near(Evaluate("reduce_mean", {{"x", F16({2}, {65504, 65504})}}).Doubles(), {65504}, 0));
}

TEST_CASE("reduce_argmax, reduce_argmin: the first of equal elements") {
  // coremltools 9.1 value inference
  CHECK(Evaluate("reduce_argmax", {{"x", F32({2, 3}, {1, 5, 5, 7, 2, 7})}}).Ints() == Ints64{1, 0});
  Tensor least = Evaluate("reduce_argmin", {{"x", I32({2, 3}, {1, 5, 1, 7, 2, 7})},
                                            {"axis", I32({}, {0})},
                                            {"keep_dims", Tensor::Scalar<bool>(true)},
                                            {"output_dtype", Tensor::String("uint16")}});
  CHECK(least.Ints() == Ints64{0, 1, 0});
  CHECK(least.dtype() == DType::kUint16);
  CHECK(least.dims() == Dims{1, 3});
  // numpy 1.24: the first NaN
  CHECK(Evaluate("reduce_argmax", {{"x", F32({4}, {1, NAN, 9, NAN})}}).Int(0) == 1);
  CHECK_THROWS_WITH(Evaluate("reduce_argmax", {{"x", F32({0}, {})}}), ContainsSubstring("empty"));
}

TEST_CASE("reductions: sizes are propagated") {
  Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  const std::vector<In> in = {{"x", Type::Tensor(DType::kInt32, {3}), {n, m, 2}}};
  CHECK(Infer("reduce_prod", in).dims[0] == std::vector<Dim>{n * m * 2});
  CHECK(Infer("reduce_sum", in).dims[0] == std::vector<Dim>{n + m + 2});
  CHECK(Infer("reduce_max", in).dims[0] == std::vector<Dim>{Max(Max(n, m), 2)});
  CHECK(!Infer("reduce_mean", in).dims[0]);
}
