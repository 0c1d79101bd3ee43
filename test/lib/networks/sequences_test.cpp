// Tests layers over sequences against values computed in C++ or by hand.
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/counted_loop.h"
#include "lib/networks/linear_attention.h"
#include "lib/networks/recurrent_layers.h"
#include "test/lib/lower/run_lowered.h"

namespace mlc::test {
using namespace networks;
namespace {

using Values = std::vector<Value*>;
using Doubles = std::vector<double>;

TEST_CASE("networks: a counted loop runs the given number of steps") {
  auto made = Lowered({I32({1}, {5}), I32({1}, {0})}, [](Builder& b, const Values& in) {
    auto step = [](Builder& at, Value* done, const Values& vars) {
      return Values{Binary(at, "add", vars[0], done), Binary(at, "mul", vars[1], 2)};
    };
    Value* one = b.Const(I32({1}, {1}));
    return CountedLoop(b, in[0], {in[1], one}, step);
  });
  CHECK(made[0].Ints() == std::vector<int64_t>{0 + 1 + 2 + 3 + 4});
  CHECK(made[1].Ints() == std::vector<int64_t>{32});
}

TEST_CASE("networks: a sweep sums a sequence from either end") {
  auto made = Lowered({F32({3, 1}, {1, 2, 4})}, [](Builder& b, const Values& in) {
    auto step = [&](Builder& at, Value* t, const Values& states) {
      Value* sum = Binary(at, "add", states[0], Rows(at, in[0], t));
      return Swept{{sum}, sum};
    };
    Value* zero = b.Const(F32({1, 1}, {0}));
    Swept on = Sweep(b, in[0], {zero}, {{in[0], 1}}, DType::kFp32, false, step);
    Swept back = Sweep(b, in[0], {zero}, {{in[0], 1}}, DType::kFp32, true, step);
    Swept last = Sweep(b, in[0], {zero}, {}, DType::kFp32, false, step);
    CHECK(last.y == nullptr);
    return Values{on.y, back.y, on.states[0], last.states[0]};
  });
  CHECK(made[0].dims() == Dims{3, 1});
  CHECK(made[0].Doubles() == Doubles{1, 3, 7});
  CHECK(made[1].Doubles() == Doubles{7, 6, 4});
  CHECK(made[2].Doubles() == Doubles{7});
  CHECK(made[3].Doubles() == Doubles{7});
}

// One head of one row: state' = decay * state + k * beta * (v - k * decay * state), y = q * state'.
TEST_CASE("networks: linear attention, unrolled and as a loop") {
  for (int count : {1, 3, 70}) {
    std::vector<float> q, k, v, decay, beta;
    Doubles expected;
    double state = 0.5;
    for (int t = 0; t < count; ++t) {
      q.push_back(1 + 0.1f * static_cast<float>(t % 5));
      k.push_back(0.5f - 0.25f * static_cast<float>(t % 3));
      v.push_back(static_cast<float>(t % 4) - 1);
      decay.push_back(t % 2 ? 0.5f : 0.75f);
      beta.push_back(t % 3 ? 1 : 0.5f);
      state *= decay[t];
      state += k[t] * beta[t] * (v[t] - k[t] * state);
      expected.push_back(q[t] * state);
    }
    Dims dims = {count, 1, 1, 1, 1};
    auto made = Lowered(
        {F32(dims, q), F32(dims, k), F32(dims, v), F32(dims, decay), F32(dims, beta),
         F32({1, 1, 1, 1, 1}, {0.5})},
        [](Builder& b, const Values& in) {
          LinearAttended after = LinearAttention(b, {in[0], in[1], in[2], in[3], in[4]}, in[5]);
          return Values{after.y, after.state};
        });
    CheckNear(made[0], expected);
    CheckNear(made[1], {state});
  }
}

TEST_CASE("networks: linear attention without decay, correction and past state sums k v") {
  // One head of two rows and one column, with two queries.
  auto made = Lowered(
      {F32({2, 1, 1, 2, 2}, {1, 0, 0, 1, 1, 1, 2, 0}), F32({2, 1, 1, 2, 1}, {1, 2, 3, 4}),
       F32({2, 1, 1, 1, 1}, {10, 100})},
      [](Builder& b, const Values& in) {
        return Values{LinearAttention(b, {in[0], in[1], in[2], nullptr, nullptr}, nullptr).y};
      });
  // The states are (10, 20) and (310, 420).
  CHECK(made[0].Doubles() == Doubles{10, 20, 730, 620});
}

// Heads share keys and queries; each column has a separate rate of decay.
TEST_CASE("networks: linear attention with rates and shared keys", "[networks]") {
  for (int count : {2, 70}) {
    std::vector<float> q, k, v, decay;
    Doubles expected, state(4);
    const float rate[] = {-0.5, -0.25};
    for (int t = 0; t < count; ++t) {
      q.push_back(1 + 0.1f * static_cast<float>(t % 5));
      k.push_back(0.5f - 0.25f * static_cast<float>(t % 3));
      decay.push_back(0.1f * static_cast<float>(t % 4));
      for (int i = 0; i < 4; ++i) {
        v.push_back(static_cast<float>((t + i) % 4) - 1);
        state[i] = state[i] * std::exp(decay[t] * rate[i % 2]) + k[t] * v.back();
        expected.push_back(q[t] * state[i]);
      }
    }
    Dims one = {count, 1, 1, 1, 1};
    auto made = Lowered({F32(one, q), F32(one, k), F32({count, 1, 2, 1, 2}, v), F32(one, decay),
                         F32({1, 2}, {rate[0], rate[1]})},
                        [](Builder& b, const Values& in) {
                          LinearTokens tokens{in[0], in[1], in[2], in[3], nullptr, in[4]};
                          LinearAttended after = LinearAttention(b, tokens, nullptr);
                          return Values{after.y, after.state};
                        });
    CHECK(made[0].dims() == Dims{count, 1, 2, 1, 2});
    CheckNear(made[0], expected);
    CheckNear(made[1], state);
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Run {
  int steps;
  int length;  // length of the row
  bool reverse, constant;
};

// One row, one input, one unit.
std::vector<Tensor> Ran(RecurrentLayer layer, const Run& run, const std::vector<float>& x,
                        const std::vector<float>& weight, const std::vector<float>& recurrence,
                        const std::vector<float>& bias,
                        const std::vector<std::string_view>& activations) {
  auto gates = static_cast<int64_t>(weight.size());
  std::vector<Tensor> inputs = {F32({run.steps, 1, 1}, x), I32({1}, {run.length}),
                                F32({gates, 1}, weight)};
  return Lowered(inputs, [&](Builder& b, const Values& in) {
    layer.x = in[0];
    if (run.length < run.steps) layer.lengths = in[1];
    LayerDirection d{};
    d.weight = run.constant ? b.Const(F32({gates, 1}, weight)) : in[2];
    d.recurrence = b.Const(F32({gates, 1}, recurrence));
    d.bias = b.Const(F32({gates}, bias));
    d.recurrence_bias = b.Const(F32({gates}, bias));
    d.h = b.Const(F32({1, 1}, {0.5}));
    if (layer.cell == Cell::kLstm) d.c = b.Const(F32({1, 1}, {-0.25}));
    for (std::string_view name : activations) {
      const CellActivationRow* row = FindCellActivation(name);
      d.activations.push_back({row, row->alpha, row->beta});
    }
    d.reverse = run.reverse;
    RecurrentResult result = Recurrent(b, layer, {d})[0];
    Values all = {result.y, result.h};
    if (result.c) all.push_back(result.c);
    return all;
  });
}

std::vector<float> Wave(int steps) {
  std::vector<float> x;
  for (int t = 0; t < steps; ++t) x.push_back(static_cast<float>(std::sin(0.7 * t)));
  return x;
}

// The runs cover MIL's operator, unrolled steps and a loop; rows shorter than the sequence; both
// directions.
const Run kRuns[] = {{2, 2, false, false}, {2, 1, true, true},     {3, 3, false, true},
                     {3, 3, true, true},   {3, 3, false, false},   {3, 2, false, true},
                     {3, 2, true, true},   {70, 70, false, false}, {70, 9, true, true},
                     {70, 70, true, false}};

TEST_CASE("networks: LSTM cells") {
  std::vector<float> w = {0.5, -0.25, 1, 0.75}, r = {0.25, 0.5, -0.5, 1},
                     bias = {0.1f, 0, 0.2f, -0.1f};
  for (const Run& run : kRuns) {
    std::vector<float> x = Wave(run.steps);
    auto made = Ran({.cell = Cell::kLstm}, run, x, w, r, bias, {"sigmoid", "tanh", "tanh"});
    Doubles y(run.steps, 0.0);
    double h = 0.5, c = -0.25;
    for (int i = 0; i < run.length; ++i) {
      int t = run.reverse ? run.length - 1 - i : i;
      auto gate = [&](int g) { return w[g] * x[t] + r[g] * h + 2 * bias[g]; };
      double in = Sigmoid(gate(0)), out = Sigmoid(gate(1)), forget = Sigmoid(gate(2));
      c = forget * c + in * std::tanh(gate(3));
      h = y[t] = out * std::tanh(c);
    }
    CheckNear(made[0], y);
    CheckNear(made[1], {h});
    CheckNear(made[2], {c});
  }
}

TEST_CASE("networks: GRU cells, with the reset before and after the product") {
  std::vector<float> w = {0.5, -0.25, 1}, r = {0.25, 0.5, -0.5}, bias = {0.1f, 0, 0.2f};
  for (bool after : {false, true})
    for (const Run& run : kRuns) {
      std::vector<float> x = Wave(run.steps);
      auto made =
          Ran({.cell = Cell::kGru, .reset_after = after}, run, x, w, r, bias, {"sigmoid", "tanh"});
      Doubles y(run.steps, 0.0);
      double h = 0.5;
      for (int i = 0; i < run.length; ++i) {
        int t = run.reverse ? run.length - 1 - i : i;
        auto gate = [&](int g) { return w[g] * x[t] + r[g] * h + 2 * bias[g]; };
        double update = Sigmoid(gate(0)), reset = Sigmoid(gate(1));
        double product = after ? reset * (r[2] * h + bias[2]) : r[2] * (reset * h) + bias[2];
        h = y[t] = (1 - update) * std::tanh(w[2] * x[t] + bias[2] + product) + update * h;
      }
      CheckNear(made[0], y);
      CheckNear(made[1], {h});
    }
}

TEST_CASE("networks: clipped plain recurrent cells with an activation that MIL lacks") {
  for (const Run& run : kRuns) {
    std::vector<float> x = Wave(run.steps);
    auto made = Ran({.cell = Cell::kRnn, .clip = 0.5}, run, x, {2}, {-1}, {0.125}, {"softsign"});
    Doubles y(run.steps, 0.0);
    double h = 0.5;
    for (int i = 0; i < run.length; ++i) {
      int t = run.reverse ? run.length - 1 - i : i;
      double sum = std::min(std::max(2.0 * x[t] - h + 0.25, -0.5), 0.5);
      h = y[t] = sum / (1 + std::fabs(sum));
    }
    CheckNear(made[0], y);
    CheckNear(made[1], {h});
  }
}

TEST_CASE("networks: recurrent layers use MIL's operator if it supports them") {
  for (bool plain : {true, false}) {
    Program program{&Ops()};
    Function* main = program.Add("main");
    Diagnostics diagnostics;
    Builder b{main->body, diagnostics};
    RecurrentLayer layer{.cell = Cell::kRnn,
                         .x = main->AddInput("x", Type::Tensor(DType::kFp32, {2, 1, 1}))};
    if (!plain) layer.clip = 1;
    Value* one = b.Const(F32({1, 1}, {1}));
    const CellActivationRow* tanh = FindCellActivation("tanh");
    Recurrent(b, layer, {{one, one, nullptr, nullptr, nullptr, one, nullptr, {{tanh, 0, 0}}}});
    int found = 0;
    ForEachOperation(main->body, [&](const Operation* op) { found += op->is("rnn"); });
    CHECK(found == plain);
    CHECK(diagnostics.decisions().empty() == plain);
  }
  CHECK(FindCellActivation("nothing") == nullptr);
}

}  // namespace
}  // namespace mlc::test
