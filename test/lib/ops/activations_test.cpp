#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {
const std::vector<double> kX = {-2.5, -1, -0.5, 0, 0.5, 1, 3};
In X() { return {"x", F64({7}, kX)}; }
In Alpha(float value) { return {"alpha", F32({}, {value})}; }
In Beta(float value) { return {"beta", F32({}, {value})}; }
}  // namespace

TEST_CASE("activations: no parameters") {
  struct Case {
    const char* op;
    std::vector<double> expected;  // numpy 1.24, sigmoid: scipy 1.10
  };
  const std::vector<Case> cases = {
      {"relu", {0, 0, 0, 0, 0.5, 1, 3}},
      {"relu6", {0, 0, 0, 0, 0.5, 1, 3}},
      {"sigmoid",
       {0.075858180021243546, 0.2689414213699951, 0.37754066879814541, 0.5, 0.62245933120185459,
        0.7310585786300049, 0.95257412682243336}},
      {"silu",
       {-0.18964545005310887, -0.2689414213699951, -0.1887703343990727, 0, 0.3112296656009273,
        0.7310585786300049, 2.8577223804673002}},
      {"softplus",
       {0.078889734292549626, 0.31326168751822286, 0.47407698418010669, 0.69314718055994529,
        0.97407698418010669, 1.3132616875182228, 3.0485873515737421}},
      {"softsign",
       {-0.7142857142857143, -0.5, -0.33333333333333331, 0, 0.33333333333333331, 0.5, 0.75}},
  };
  for (const Case& each : cases) {
    INFO(each.op);
    CHECK(Near(Evaluate(each.op, {X()}).Doubles(), each.expected, 1e-15));
  }
}

TEST_CASE("activations: scalar parameters") {
  // coremltools 9.1 value inference
  CHECK(Near(Evaluate("clamped_relu", {X(), Alpha(0.25), Beta(2)}).Doubles(),
             {-0.625, -0.25, -0.125, 0, 0.5, 1, 2}, 0));
  CHECK(Near(Evaluate("leaky_relu", {X(), Alpha(0.25)}).Doubles(),
             {-0.625, -0.25, -0.125, 0, 0.5, 1, 3}, 0));
  CHECK(Near(Evaluate("linear_activation", {X(), Alpha(2), Beta(-1)}).Doubles(),
             {-6, -3, -2, -1, 0, 1, 5}, 0));
  CHECK(Near(Evaluate("sigmoid_hard", {X(), Alpha(0.25), Beta(0.5)}).Doubles(),
             {0, 0.25, 0.375, 0.5, 0.625, 0.75, 1}, 0));
  CHECK(
      Near(Evaluate("thresholded_relu", {X(), Alpha(0.5)}).Doubles(), {0, 0, 0, 0, 0.5, 1, 3}, 0));
  // numpy 1.24
  CHECK(Near(Evaluate("elu", {X(), Alpha(0.5)}).Doubles(),
             {-0.45895750068805058, -0.31606027941427883, -0.19673467014368329, 0, 0.5, 1, 3},
             1e-15));
  CHECK(Near(Evaluate("scaled_tanh", {X(), Alpha(1.5), Beta(0.5)}).Doubles(),
             {-1.2724254599362692, -0.69317573589001458, -0.36737799360556367, 0,
              0.36737799360556367, 0.69317573589001458, 1.3577223804672998},
             1e-15));
  // Core ML's definition: min(beta, x) for x >= 0, min(beta, alpha * x) below
  CHECK(Near(Evaluate("clamped_relu", {X(), Alpha(2), Beta(-2)}).Doubles(),
             {-5, -2, -2, -2, -2, -2, -2}, 0));
}

TEST_CASE("gelu: three modes") {
  // numpy 1.24 and scipy 1.10
  CHECK(Near(Evaluate("gelu", {X()}).Doubles(),
             {-0.015524163314440398, -0.15865525393145707, -0.15426876936299347, 0,
              0.3457312306370065, 0.84134474606854293, 2.9959503059051098},
             1e-14));
  CHECK(Near(Evaluate("gelu", {X(), {"mode", Tensor::String("TANH_APPROXIMATION")}}).Doubles(),
             {-0.015084266089998577, -0.15880800939172329, -0.15428599017485606, 0,
              0.34571400982514394, 0.84119199060827676, 2.9963626079182268},
             1e-14));
  CHECK(Near(Evaluate("gelu", {X(), {"mode", Tensor::String("SIGMOID_APPROXIMATION")}}).Doubles(),
             {-0.034986165048570078, -0.1542042340671787, -0.14961156339361989, 0,
              0.35038843660638014, 0.84579576593282124, 2.981928690292214},
             1e-14));
  CHECK_THROWS_WITH(Evaluate("gelu", {X(), {"mode", Tensor::String("TANH")}}),
                    ContainsSubstring("TANH_APPROXIMATION"));
}

TEST_CASE("activations: extreme inputs") {
  Tensor x = F32({4}, {NAN, INFINITY, -INFINITY, 1000});
  CHECK(Near(Evaluate("softplus", {{"x", x}}).Doubles(), {kNaN, kInf, 0, 1000}, 0));
  CHECK(Near(Evaluate("sigmoid", {{"x", x}}).Doubles(), {kNaN, 1, 0, 1}, 0));
  CHECK(Near(Evaluate("relu", {{"x", x}}).Doubles(), {kNaN, kInf, 0, 1000}, 0));
  CHECK(Near(Evaluate("relu6", {{"x", x}}).Doubles(), {kNaN, 6, 0, 6}, 0));
  CHECK(Near(Evaluate("elu", {{"x", x}, Alpha(1)}).Doubles(), {kNaN, kInf, -1, 1000}, 0));
  // "x if x >= alpha, otherwise 0"; the slope applies only below zero.
  CHECK(Near(Evaluate("thresholded_relu", {{"x", x}, Alpha(1)}).Doubles(), {0, kInf, 0, 1000}, 0));
  CHECK(Near(
      Evaluate("prelu", {{"x", F32({1, 1, 1, 3}, {0, 1, -1})}, {"alpha", F32({1}, {INFINITY})}})
          .Doubles(),
      {0, 1, -kInf}, 0));
  CHECK(Evaluate("relu", {{"x", F16({0, 3}, {})}}).dims() == Dims{0, 3});
}

TEST_CASE("prelu, softplus_parametric: per channel") {
  // coremltools 9.1 value inference
  Tensor x = F32({1, 3, 2, 1}, {-1, 2, -3, 4, -5, -6}), alpha = F32({3}, {0.5, 0.25, 2});
  CHECK(Near(Evaluate("prelu", {{"x", x}, {"alpha", alpha}}).Doubles(),
             {-0.5, 2, -0.75, 4, -10, -12}, 0));
  CHECK(Near(
      Evaluate("softplus_parametric", {{"x", x}, {"alpha", alpha}, {"beta", F32({3}, {1, 2, -1})}})
          .Doubles(),
      {0.15663082897663116, 1.0634639263153076, 0.0006189129198901355, 2.0000839233398438,
       10.01343059539795, 12.004951477050781},
      1e-6));
  CHECK_THROWS_WITH(Evaluate("prelu", {{"x", x}, {"alpha", F32({2}, {1, 1})}}),
                    ContainsSubstring("per channel (3)"));
  CHECK_THROWS_WITH(Evaluate("prelu", {{"x", x.Reshaped({1, 3, 2})}, {"alpha", alpha}}),
                    ContainsSubstring("rank 4"));
}

TEST_CASE("softmax: along an axis, large numbers, masks") {
  // scipy 1.10 special.softmax
  Tensor x = F32({3, 3}, {1, 2, 3, 1, 2, 1000, -INFINITY, 0, 0});
  CHECK(Near(Evaluate("softmax", {{"x", x}}).Doubles(),
             {0.090030573170380435, 0.24472847105479767, 0.66524095577482178, 0, 0, 1, 0, 0.5, 0.5},
             1e-7));
  CHECK(Near(Evaluate("softmax", {{"x", x.Rows(0, 2)}, {"axis", I32({}, {0})}}).Doubles(),
             {0.5, 0.5, 0, 0.5, 0.5, 1}, 0));
  CHECK(Evaluate("softmax", {{"x", F32({2, 0}, {})}}).dims() == Dims{2, 0});
  CHECK_THROWS_WITH(Evaluate("softmax", {{"x", x}, {"axis", I32({}, {2})}}),
                    ContainsSubstring("axis 2"));
}

TEST_CASE("activations: range rules are sound", "[traits]") {
  CheckRange("prelu", [](Draw& draw, DType) -> Case {
    Tensor x = draw.Image();
    return {{"x", x}, {"alpha", draw.Numbers({4}, x.dtype())}};
  });
  CheckRange("softplus_parametric", [](Draw& draw, DType) -> Case {
    Tensor x = draw.Image();
    return {{"x", x},
            {"alpha", draw.Numbers({4}, x.dtype())},
            {"beta", draw.Between({4}, x.dtype(), -1, 1)}};
  });
  CheckTraits("gelu", [](Draw& draw, const Dims&, DType) -> Case {
    return {{"mode", Text(draw.Of<std::string_view>(
                         {"EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"}))}};
  });
}
