// Tests layers that networks share against values computed in C++ or by hand.
#include <cmath>
#include <functional>
#include <limits>

#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/masks.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary.h"
#include "test/lib/lower/run_lowered.h"

namespace mlc::test {
using namespace networks;
namespace {

using Values = std::vector<Value*>;
using Doubles = std::vector<double>;

Tensor Count(Dims dims) {
  std::vector<float> values(ElementCount(dims));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::Of(std::move(dims), values);
}

TEST_CASE("networks: heads are split, repeated and joined") {
  auto made = Lowered({Count({1, 2, 4})}, [](Builder& b, const Values& in) {
    Value* heads = Heads(b, in[0], 2);
    return Values{heads, Repeated(b, heads, 2), Joined(b, heads)};
  });
  CHECK(made[0].dims() == Dims{1, 2, 2, 2});
  CHECK(made[0].Doubles() == Doubles{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(made[1].dims() == Dims{1, 4, 2, 2});
  CHECK(made[1].Doubles() == Doubles{0, 1, 4, 5, 0, 1, 4, 5, 2, 3, 6, 7, 2, 3, 6, 7});
  CHECK(made[2].Doubles() == Count({8}).Doubles());
  CHECK(RefusalId([] {
          Lowered({Count({1, 2, 4})},
                  [](Builder& b, const Values& in) { return Values{Heads(b, in[0], 3)}; });
        }) == "bad-operand");
}

TEST_CASE("networks: rotary embedding rotates pairs and keeps other elements") {
  // One token of one head: (1, 2, 3, 4, 9), rotated by 90 and 180 degrees.
  Tensor x = F32({1, 1, 1, 5}, {1, 2, 3, 4, 9});
  Tensor cosine = F32({1, 1, 2}, {0, -1}), sine = F32({1, 1, 2}, {1, 0});
  auto made = Lowered({x, cosine, sine}, [](Builder& b, const Values& in) {
    return Values{Rotated(b, in[0], in[1], in[2], true), Rotated(b, in[0], in[1], in[2], false)};
  });
  CHECK(made[0].Doubles() == Doubles{-2, 1, -3, -4, 9});  // pairs (1, 2), (3, 4)
  CHECK(made[1].Doubles() == Doubles{-3, -2, 1, -4, 9});  // pairs (1, 3), (2, 4)
  CHECK(RefusalId([] {
          Lowered({Count({1, 1, 1, 2}), Count({1, 1, 2})}, [](Builder& b, const Values& in) {
            return Values{Rotated(b, in[0], in[1], in[1], true)};
          });
        }) == "bad-operand");
}

TEST_CASE("networks: causal masks hide later keys and keys outside of the window") {
  // Two queries after two past keys: positions 2 and 3.
  auto made = Lowered({Count({1, 1, 2, 1}), Count({1, 1, 4, 1})}, [](Builder& b, const Values& in) {
    Value* positions = Positions(b, in[0], in[1]);
    return Values{positions, CausalBias(b, positions, in[1], 0, -5, DType::kFp32),
                  CausalBias(b, positions, in[1], 2, -5, DType::kFp32),
                  b.Cast(InReach(b, in[0], in[1], nullptr, 0, 1), DType::kInt32)};
  });
  CHECK(made[0].Ints() == std::vector<int64_t>{2, 3});
  CHECK(made[1].Doubles() == Doubles{0, 0, 0, -5, 0, 0, 0, 0});
  CHECK(made[2].Doubles() == Doubles{-5, 0, 0, -5, -5, -5, 0, 0});
  CHECK(made[3].Ints() == std::vector<int64_t>{1, 1, 0, 0, 0, 1, 1, 0});
}

TEST_CASE("networks: causal masks depend on the positions of each row") {
  auto made = Lowered({I32({2, 1}, {0, 2}), Count({1, 1, 3, 1})}, [](Builder& b, const Values& in) {
    return Values{CausalBias(b, in[0], in[1], 0, -1, DType::kFp32)};
  });
  CHECK(made[0].dims() == Dims{2, 1, 1, 3});
  CHECK(made[0].Doubles() == Doubles{0, -1, -1, 0, 0, 0});
}

TEST_CASE("networks: bias of an integer mask, soft cap and sink") {
  Tensor scores = F32({1, 1, 1, 2}, {0, std::log(2.0f)});
  auto made = Lowered({I32({3}, {1, 0, 2}), scores, F32({1, 1, 1, 1}, {0})},
                      [](Builder& b, const Values& in) {
                        return Values{BiasOf(b, in[0], -7, DType::kFp32), SoftCapped(b, in[1], 2),
                                      Shares(b, in[1], nullptr), Shares(b, in[1], in[2])};
                      });
  CHECK(made[0].Doubles() == Doubles{0, -7, 0});
  CheckNear(made[1], {0, 2 * std::tanh(std::log(2.0) / 2)});
  CheckNear(made[2], {1 / 3.0, 2 / 3.0});
  CheckNear(made[3], {1 / 4.0, 2 / 4.0});  // the sink has a share of 1/4
}

// Two queries and three keys of one head.
const std::vector<double> kQueries = {1, 0, 0.5, -1}, kKeys = {1, 2, -1, 0.5, 0, 1},
                          kValues = {1, 2, 3};

// Returns the softmax over the scores that `score` gives for a query and a key, times the values. A
// score of -inf hides a key; if all keys are hidden, the row is 0. `sink` is an additional score.
Doubles Attended2(const std::function<double(int, int, double)>& score,
                  double sink = -std::numeric_limits<double>::infinity()) {
  Doubles y;
  for (int s = 0; s < 2; ++s) {
    double sum = std::exp(sink), weighted = 0;
    for (int t = 0; t < 3; ++t) {
      double dot = kQueries[2 * s] * kKeys[2 * t] + kQueries[2 * s + 1] * kKeys[2 * t + 1];
      double share = std::exp(score(s, t, dot));
      sum += share;
      weighted += share * kValues[t];
    }
    y.push_back(sum > 0 ? weighted / sum : 0);
  }
  return y;
}

Tensor Heads1(int64_t count, int64_t size, const std::vector<double>& values) {
  return Tensor::Of({1, 1, count, size}, values).Cast(DType::kFp32);
}

TEST_CASE("networks: attention with a scale, a cap, biases and a sink") {
  std::vector<Tensor> inputs = {Heads1(2, 2, kQueries), Heads1(3, 2, kKeys), Heads1(3, 1, kValues),
                                F32({1, 1, 1, 3}, {0, 1, -1}), F32({1, 1, 1, 1}, {0.25})};
  auto made = Lowered(inputs, [](Builder& b, const Values& in) {
    Attended plain = Attend(b, {in[0], in[1], in[2]});
    Attended all = Attend(b, {.q = in[0],
                              .k = in[1],
                              .v = in[2],
                              .scale = 0.5,
                              .softcap = 0.75,
                              .biases = {in[3], in[3]},
                              .sink = in[4]});
    return Values{plain.y, all.y, plain.products, all.products, all.capped, all.scores};
  });
  CHECK(made[0].dims() == Dims{1, 1, 2, 1});
  CheckNear(made[0], Attended2([](int, int, double dot) { return dot; }));
  const double bias[] = {0, 1, -1};
  auto score = [&](int, int t, double dot) {
    return 0.75 * std::tanh(dot * 0.5 / 0.75) + 2 * bias[t];
  };
  CheckNear(made[1], Attended2(score, 0.25));
  CheckNear(made[2], {1, -1, 0, -1.5, -1, -1});
  CheckNear(made[3], {0.5, -0.5, 0, -0.75, -0.5, -0.5});
  Doubles capped, scores;
  for (double dot : {1.0, -1.0, 0.0, -1.5, -1.0, -1.0}) capped.push_back(score(0, 0, dot));
  for (int i = 0; i < 6; ++i) scores.push_back(capped[i] + 2 * bias[i % 3]);
  CheckNear(made[4], capped);
  CheckNear(made[5], scores);
}

TEST_CASE("networks: hidden keys have weight 0; the result without keys is 0") {
  // Query 0 sees keys 0 and 2, query 1 sees no key.
  std::vector<Tensor> inputs = {Heads1(2, 2, kQueries), Heads1(3, 2, kKeys), Heads1(3, 1, kValues),
                                I32({2, 3}, {1, 1, 1, 0, 0, 0}), I32({1, 3}, {1, 0, 1})};
  auto made = Lowered(inputs, [](Builder& b, const Values& in) {
    AttentionParts parts{in[0], in[1], in[2]};
    parts.seen = {b.Cast(in[3], DType::kBool), nullptr, b.Cast(in[4], DType::kBool)};
    parts.kept = parts.seen;
    parts.wants_masked = true;
    int looked = 0;
    parts.fits = [&](Value* changed, Value*) { return ++looked, changed; };
    Attended made = Attend(b, parts);
    CHECK(looked == 1);
    return Values{made.y, made.shares, made.masked};
  });
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  CheckNear(made[0],
            Attended2([](int s, int t, double dot) { return s == 0 && t != 1 ? dot : kHidden; }));
  double shares = std::exp(1.0) + 1;
  CheckNear(made[1], {std::exp(1.0) / shares, 0, 1 / shares, 0, 0, 0});
  CHECK(made[2].Double(0) == 1);
  for (int i : {1, 3, 4, 5}) CHECK(made[2].Double(i) == kHidden);
}

TEST_CASE("networks: normalisations of the last dimension") {
  // Rows (1, 3) and (2, 6): means 2 and 4, variances 1 and 4, mean squares 5 and 20.
  Tensor x = F32({2, 2}, {1, 3, 2, 6}), scale = F32({2}, {1, 10}), bias = F32({2}, {0, 1});
  auto made = Lowered({x, scale, bias}, [&](Builder& b, const Values& in) {
    Value* mean = Mean(b, in[0], {-1});
    Normalized parts =
        RmsNorm(b, b.Make("sub", {{"x", in[0]}, {"y", mean}}), {-1}, in[1], in[2], 0);
    return Values{LayerNorm(b, in[0], {-1}, in[1], in[2], 0),
                  LayerNorm(b, in[0], {1}, b.Const(scale), b.Const(bias), 0),
                  parts.y,
                  mean,
                  parts.inverse,
                  RmsNorm(b, in[0], {1}, in[1], nullptr, 0).y};
  });
  for (int i : {0, 1, 2}) CheckNear(made[i], {-1, 11, -1, 11});
  CheckNear(made[3], {2, 4});
  CheckNear(made[4], {1, 0.5});
  double root = std::sqrt(5.0);
  CheckNear(made[5], {1 / root, 30 / root, 1 / root, 30 / root});
}

TEST_CASE("networks: layer_norm includes constant scale and bias") {
  Program program{&Ops()};
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  Builder b{main->body, diagnostics};
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, {3, 2}));
  Value* vector = b.Const(F32({2}, {1, 2}));
  CHECK(LayerNorm(b, x, {-1}, vector, nullptr, 1e-5)->def->is("layer_norm"));
  // A scale that broadcasts does not have exactly these dimensions.
  CHECK(LayerNorm(b, x, {0, 1}, vector, nullptr, 1e-5)->def->is("mul"));
}

TEST_CASE("networks: group normalisation covers all positions") {
  // Two groups of one channel each: (0, 2) and (4, 8).
  auto made = Lowered({F32({1, 2, 2}, {0, 2, 4, 8})}, [](Builder& b, const Values& in) {
    return Values{GroupNorm(b, in[0], 2, 0), GroupNorm(b, in[0], 1, 0)};
  });
  CheckNear(made[0], {-1, 1, -1, 1});
  double deviation = std::sqrt(35.0 / 4);  // of 0, 2, 4, 8 around the mean 3.5
  CheckNear(made[1], {-3.5 / deviation, -1.5 / deviation, 0.5 / deviation, 4.5 / deviation});
  CHECK(RefusalId([] {
          Lowered({Count({1, 3, 2})},
                  [](Builder& b, const Values& in) { return Values{GroupNorm(b, in[0], 2, 0)}; });
        }) == "bad-attribute");
}

}  // namespace
}  // namespace mlc::test
