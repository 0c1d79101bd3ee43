#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {
// np.arange(12).reshape(1, 2, 2, 3) ** 2 / 10
Tensor X() { return F64({1, 2, 2, 3}, {0, 0.1, 0.4, 0.9, 1.6, 2.5, 3.6, 4.9, 6.4, 8.1, 10, 12.1}); }
const In kGamma{"gamma", F64({2}, {0.5, 2})}, kBeta{"beta", F64({2}, {1, -1})};
const In kEpsilon{"epsilon", F64({}, {1e-3})};
}  // namespace

TEST_CASE("batch_norm") {
  const std::vector<In> in = {
      {"x", X()}, {"mean", F64({2}, {1, 2})}, {"variance", F64({2}, {4, 0.25})}, kGamma, kBeta,
      kEpsilon};
  CHECK(Near(Evaluate("batch_norm", in).Doubles(),  // numpy 1.24
             {0.75003124414184552, 0.77502811972766095, 0.85001874648510722, 0.97500312441418457,
              1.1499812535148928, 1.3749531337872318, 5.3872382724463943, 10.57686936880909,
              16.564905249227586, 23.351345913701874, 30.93619136223197, 39.31944159481786},
             1e-14));
  // Without gamma and beta; hand calculation: (x - 1) / sqrt(3.99999 + 1e-5)
  Tensor y = Evaluate("batch_norm", {{"x", F32({1, 1, 2}, {3, -1})},
                                     {"mean", F32({1}, {1})},
                                     {"variance", F32({1}, {3.99999f})}});
  CHECK(Near(y.Doubles(), {1, -1}, 1e-6));
  CHECK_THROWS_WITH(
      Evaluate("batch_norm",
               {{"x", X()}, {"mean", F64({3}, {1, 2, 3})}, {"variance", F64({2}, {1, 1})}}),
      ContainsSubstring("per channel (2)"));
  CHECK_THROWS_WITH(Evaluate("batch_norm", {{"x", F32({2}, {1, 2})},
                                            {"mean", F32({2}, {1, 2})},
                                            {"variance", F32({2}, {1, 2})}}),
                    ContainsSubstring("rank"));
}

TEST_CASE("instance_norm") {
  CHECK(Near(
      Evaluate("instance_norm", {{"x", X()}, kGamma, kBeta, kEpsilon}).Doubles(),  // numpy 1.24
      {0.4851126110039965, 0.541282144349015, 0.70979074438407075, 0.99063841110916362,
       1.3838251445242937, 1.8893509446294607, -3.6880148944035893, -2.7958227166866529,
       -1.7663702039363423, -0.59965735615265714, 0.7043158266644034, 2.1455493445148384},
      1e-14));
  CHECK(Evaluate("instance_norm", {{"x", F32({0, 2, 3}, {})}}).dims() == Dims{0, 2, 3});
  CHECK(Evaluate("instance_norm", {{"x", F32({1, 2, 0}, {})}}).dims() == Dims{1, 2, 0});
}

TEST_CASE("l2_norm: the last three dimensions") {
  // coremltools 9.1 value inference
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(Near(Evaluate("l2_norm", {{"x", F32({2, 1, 2, 2}, x)}}).Doubles(),
             {0, 0.26726123690605164, 0.5345224738121033, 0.8017836809158325, 0.35634830594062805,
              0.44543537497520447, 0.5345224738121033, 0.6236095428466797},
             1e-7));
  CHECK_THROWS_WITH(Evaluate("l2_norm", {{"x", F32({2, 4}, x)}}), ContainsSubstring("rank 3"));
}

TEST_CASE("layer_norm: some axes, all axes") {
  // numpy 1.24
  CHECK(Near(Evaluate("layer_norm", {{"x", X()},
                                     {"axes", I32({2}, {1, -1})},
                                     {"gamma", F64({2, 3}, {0, 1, 2, 3, 4, 5})}})
                 .Doubles(),
             {0, -0.97284167609958483, -1.709046187742514, 0, -0.97401060995809663,
              -1.5371104938401212, 1.2226253496927213, 3.6810225582146456, 7.5592427534765045,
              1.5295010359498227, 3.7742911135876231, 7.1148431274282817},
             1e-6));
  CHECK(Near(Evaluate("layer_norm", {{"x", X()}}).Doubles(),
             {-1.0699512339379431, -1.0445768963741975, -0.96845388368296037, -0.841582195864232,
              -0.66396183291801214, -0.43559279484430097, -0.1564750816430984, 0.17339130668559558,
              0.55400637014178089, 0.98537010872545738, 1.4674825224366255, 2.0003436112752846},
             1e-6));
  // coremltools 9.1 value inference
  Tensor y = Evaluate("layer_norm", {{"x", F32({2, 3}, {1, 2, 4, -1, 0, 3})},
                                     {"axes", I32({1}, {-1})},
                                     {"gamma", F32({3}, {1, 2, 0.5})},
                                     {"beta", F32({3}, {0, 1, -1})},
                                     {"epsilon", F32({}, {1e-3f})}});
  CHECK(Near(y.Doubles(),
             {-1.0687013864517212, 0.4656493663787842, -0.3320615291595459, -0.9804109930992126,
              0.21567118167877197, -0.31371235847473145},
             1e-6));
  CHECK_THROWS_WITH(Evaluate("layer_norm", {{"x", X()}, {"axes", I32({1}, {-1})}, kGamma}),
                    ContainsSubstring("shape [3]"));
}

TEST_CASE("local_response_norm: windows of channels") {
  // torch 1.13: local_response_norm(x, size), for sizes 2 and 3.
  Tensor x = F32({1, 3, 2}, {1, -7, 5, -6, -3, -5});
  CHECK(Near(Evaluate("local_response_norm", {{"x", x}, {"size", I32({}, {2})}}).Doubles(),
             {0.99996257, -6.98716545, 4.99513102, -5.98094559, -2.99618077, -4.98859310}, 1e-6));
  CHECK(Near(Evaluate("local_response_norm", {{"x", x}, {"size", I32({}, {3})}}).Doubles(),
             {0.99935049, -6.98516130, 4.99562931, -5.98355293, -2.99745274, -4.99238825}, 1e-6));
  // torch 1.13: local_response_norm(x.view(1, 3, 1, 1, 2), 2, alpha=0.01, beta=1, k=2)
  CHECK(Near(Evaluate("local_response_norm", {{"x", x.Reshaped({1, 3, 1, 1, 2})},
                                              {"size", I32({}, {2})},
                                              {"alpha", F32({}, {0.01})},
                                              {"beta", F32({}, {1})},
                                              {"k", F32({}, {2})}})
                 .Doubles(),
             {0.49875310, -3.11804032, 2.34741783, -2.47422695, -1.38248849, -2.16919732}, 1e-6));
  // torch 1.13: LocalResponseNorm(size, alpha=0.5, beta=0.75, k=2) of arange(1, 6).view(1, 5, 1, 1)
  Tensor row = F32({1, 5, 1, 1}, {1, 2, 3, 4, 5});
  auto normalised = [&](int size) {
    return Evaluate("local_response_norm", {{"x", row},
                                            {"size", I32({}, {size})},
                                            {"alpha", F32({}, {0.5})},
                                            {"beta", F32({}, {0.75})},
                                            {"k", F32({}, {2})}})
        .Doubles();
  };
  CHECK(Near(normalised(2),
             {0.5443310737609863, 0.8262614011764526, 0.8649714589118958, 0.8217118382453918,
              0.7636035680770874},
             1e-6));
  CHECK(Near(normalised(3),
             {0.45790645480155945, 0.6659068465232849, 0.70981764793396, 0.6940323114395142,
              0.9758352637290955},
             1e-6));
}

namespace {

// x and epsilon, and optionally gamma and beta.
Case Norm(Draw& draw, bool scaled) {
  Tensor x = draw.Image();
  Case operands = {{"x", x}, {"epsilon", draw.Between({}, x.dtype(), 1e-3, 0.1)}};
  for (std::string_view param : {"gamma", "beta"})
    if (scaled && draw.Coin()) operands.emplace_back(param, draw.Numbers({4}, x.dtype()));
  return operands;
}

}  // namespace

TEST_CASE("normalization: range rules are sound", "[traits]") {
  CheckRange("local_response_norm", [](Draw& draw, DType) -> Case {
    Tensor x = draw.Image();
    return {{"x", x}, {"size", Number(draw.Int(1, 3))}, {"k", draw.Between({}, x.dtype(), 0.5, 2)}};
  });
  CheckRange("l2_norm", [](Draw& draw, DType) -> Case { return Norm(draw, false); });
  CheckRange("instance_norm", [](Draw& draw, DType) -> Case { return Norm(draw, true); });
  CheckRange("layer_norm", [](Draw& draw, DType) -> Case {
    Case operands = Norm(draw, true);
    operands.emplace_back("axes", Ints32({1}));
    return operands;
  });
  CheckRange("batch_norm", [](Draw& draw, DType) -> Case {
    Case operands = Norm(draw, true);
    DType dtype = operands[0].value.dtype();
    operands.emplace_back("mean", draw.Numbers({4}, dtype));
    operands.emplace_back("variance", draw.Between({4}, dtype, 0, 4));
    return operands;
  });
}
