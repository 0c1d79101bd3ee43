// Recurrent layers. Order of gates in weights and biases: input, forget, output, cell for lstm;
// reset, output, update for gru (coremltools, iOS15/recurrent.py).
#include "lib/ops/recurrent.h"

#include <algorithm>
#include <cmath>

#include "lib/ops/narrow_result.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

RecurrentActivation RecurrentActivationOf(const OpContext& context, std::string_view param) {
  std::string name = context.String(param);
  if (name == "linear") return RecurrentActivation::kLinear;
  if (name == "relu") return RecurrentActivation::kRelu;
  if (name == "sigmoid") return RecurrentActivation::kSigmoid;
  if (name == "hard_sigmoid" || name == "sigmoid_hard") return RecurrentActivation::kHardSigmoid;
  if (name == "tanh" || name == "scaled_tanh") return RecurrentActivation::kTanh;
  context.Fail("{} is \"{}\", expected hard_sigmoid, linear, relu, scaled_tanh, sigmoid or tanh",
               param, name);
}

RecurrentSizes::RecurrentSizes(const OpContext& context) {
  Dims x = StaticDims(context.shape("x"));
  steps = x[0];
  batch = x[1];
  inputs = x[2];
  hidden = context.shape("weight_hh")[1].constant();
}

std::vector<RecurrentDirection> RecurrentDirections(const OpContext& context) {
  std::string direction = context.String("direction");
  if (direction == "forward") return {{"", false, false, 0}};
  if (direction == "reverse") return {{"", true, false, 0}};
  if (direction == "bidirectional" && context.def().Find("weight_ih_back") >= 0)
    return {{"", false, false, 0}, {"_back", true, true, 1}};
  context.Fail("direction is \"{}\"", direction);
}

namespace {

// context.Fail unless `name` is omitted or has these dimensions, as far as they are known.
void CheckShape(const OpContext& context, std::string_view name, const Shape& expected) {
  if (!context.has(name)) return;
  if (!MayEqual(context.shape(name), expected))
    context.Fail("{} is {}, expected {}", name, context.type(name).ToString(), ToString(expected));
}

// Infers the sequence or its last element, and the final states (`states` of them).
void InferRecurrent(InferContext& context, int64_t gates, int states) {
  if (context.rank("x") != 3)
    context.Fail("x is {}, expected [steps, batch, inputs]", context.type("x").ToString());
  if (context.rank("weight_hh") != 2)
    context.Fail("weight_hh is {}, expected {} gates of [hidden, hidden]",
                 context.type("weight_hh").ToString(), gates);
  const Shape& x = context.shape("x");
  Dim hidden = context.shape("weight_hh")[1], rows = hidden * gates;
  if (!hidden.is_constant()) context.Fail("the weights have no static size");
  std::vector<RecurrentDirection> directions = RecurrentDirections(context);
  for (const RecurrentDirection& direction : directions) {
    auto name = [&](std::string_view param) {
      return fmt::format("{}{}", param, direction.suffix);
    };
    for (std::string_view weight : {"weight_ih", "weight_hh"})
      if (!context.has(name(weight)))
        context.Fail("{} is missing, but a bidirectional layer requires it", name(weight));
    CheckShape(context, name("weight_ih"), {rows, x[2]});
    CheckShape(context, name("weight_hh"), {rows, hidden});
    CheckShape(context, name("bias"), {rows});
    if (context.def().Find("peephole") >= 0) CheckShape(context, name("peephole"), {hidden * 3});
    if (context.def().Find("input_bias") >= 0) CheckShape(context, "input_bias", {rows});
  }
  for (std::string_view param : {"activation", "recurrent_activation", "cell_activation"})
    if (context.def().Find(param) >= 0) RecurrentActivationOf(context, param);
  Dim width = hidden * static_cast<int64_t>(directions.size());
  Shape state = {x[1], width};
  CheckShape(context, "initial_h", state);
  if (states > 1) CheckShape(context, "initial_c", state);
  Dim steps = x[0];
  if (steps == Dim(0)) context.Fail("x has no steps");
  context.Result(context.dtype("x"),
                 {context.Bool("output_sequence") ? steps : Dim(1), x[1], width});
  for (int i = 0; i < states; ++i) context.Result(context.dtype("x"), state);
}

double Activate(RecurrentActivation activation, double x) {
  switch (activation) {
    case RecurrentActivation::kLinear:
      return x;
    case RecurrentActivation::kRelu:
      return MaximumOf(x, 0.0);
    case RecurrentActivation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case RecurrentActivation::kHardSigmoid:
      return MinimumOf(MaximumOf(0.2 * x + 0.5, 0.0), 1.0);
    case RecurrentActivation::kTanh:
      return std::tanh(x);
  }
  return x;
}

using Vector = std::vector<double>;

Vector Operand(const OpContext& context, std::string_view param, std::string_view suffix) {
  std::string name = fmt::format("{}{}", param, suffix);
  return context.has(name) ? context.value(name).Doubles() : Vector();
}

// sums[r] += weight[first + r, :] * x. Rows are interleaved because each addition depends on the
// one before.
void AddProduct(const Vector& weight, const double* x, int64_t width, Vector& sums,
                int64_t first = 0) {
  constexpr int64_t kRows = 8;
  const int64_t count = std::ssize(sums);
  int64_t r = 0;
  for (; r + kRows <= count; r += kRows) {
    const double* w = weight.data() + (first + r) * width;
    double rows[kRows];
    std::copy_n(sums.data() + r, kRows, rows);
    for (int64_t i = 0; i < width; ++i)
      for (int64_t k = 0; k < kRows; ++k) rows[k] += w[k * width + i] * x[i];
    std::copy_n(rows, kRows, sums.data() + r);
  }
  for (; r < count; ++r)
    for (int64_t i = 0; i < width; ++i) sums[r] += weight[(first + r) * width + i] * x[i];
}

// Computes a layer. The states of the operation are the vectors `names`; the first is also the
// result of each step. step(layer, sums of x's part, states) advances the states by one step.
template <class Layer>
void Unroll(EvalContext& context, const std::vector<std::string_view>& names) {
  RecurrentSizes n(context);
  bool sequence = context.Bool("output_sequence");
  std::vector<RecurrentDirection> directions = RecurrentDirections(context);
  int64_t width = n.hidden * static_cast<int64_t>(directions.size());
  Vector x = context.in("x").Doubles(), y(ElementCount(context.out_dims()));
  std::vector<Vector> finals;
  for (std::string_view name : names) finals.push_back(context.in(name).Doubles());
  for (const RecurrentDirection& direction : directions) {
    Layer layer(context, direction.suffix, n.hidden);
    Vector weight = Operand(context, "weight_ih", direction.suffix);
    for (int64_t b = 0; b < n.batch; ++b) {
      int64_t at = b * width + direction.half * n.hidden;
      std::vector<Vector> states;
      for (const Vector& initial : finals)
        states.emplace_back(initial.begin() + at, initial.begin() + at + n.hidden);
      for (int64_t step = 0; step < n.steps; ++step) {
        int64_t back = n.steps - 1 - step, from = direction.reads_backward ? back : step,
                to = direction.writes_backward ? back : step;
        Vector sums(weight.size() / std::max<int64_t>(n.inputs, 1));
        sums.resize(layer.gates * n.hidden);
        AddProduct(weight, x.data() + (from * n.batch + b) * n.inputs, n.inputs, sums);
        layer.Step(sums, states);
        if (sequence || step == n.steps - 1)
          std::copy(states[0].begin(), states[0].end(),
                    y.begin() + (sequence ? to * n.batch * width : 0) + at);
      }
      for (size_t i = 0; i < states.size(); ++i)
        std::copy(states[i].begin(), states[i].end(), finals[i].begin() + at);
    }
  }
  context.Set(Store(context.out_dtype(), context.out_dims(), y));
  for (size_t i = 0; i < finals.size(); ++i)
    context.Set(Store(context.out_dtype(), context.out_dims(static_cast<int>(i) + 1), finals[i]));
}

struct Lstm {
  static constexpr int64_t gates = 4;
  Lstm(const OpContext& context, std::string_view suffix, int64_t size)
      : hidden(size),
        weight(Operand(context, "weight_hh", suffix)),
        bias(Operand(context, "bias", suffix)),
        peephole(Operand(context, "peephole", suffix)),
        gate(RecurrentActivationOf(context, "recurrent_activation")),
        cell(RecurrentActivationOf(context, "cell_activation")),
        output(RecurrentActivationOf(context, "activation")) {
    bias.resize(4 * size);
    peephole.resize(3 * size);
    if (context.has("clip")) clip = context.Double("clip");
  }

  void Step(Vector& sums, std::vector<Vector>& states) const {
    Vector &h = states[0], &c = states[1];
    AddProduct(weight, h.data(), hidden, sums);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i];
    for (int64_t j = 0; j < hidden; ++j) {
      double in = Activate(gate, sums[j] + peephole[j] * c[j]);
      double forget = Activate(gate, sums[hidden + j] + peephole[hidden + j] * c[j]);
      double fresh = Activate(cell, sums[3 * hidden + j]);
      c[j] = MinimumOf(MaximumOf(forget * c[j] + in * fresh, -clip), clip);
      double out = Activate(gate, sums[2 * hidden + j] + peephole[2 * hidden + j] * c[j]);
      h[j] = out * Activate(output, c[j]);
    }
  }

  int64_t hidden;
  Vector weight, bias, peephole;
  RecurrentActivation gate, cell, output;
  double clip = std::numeric_limits<double>::infinity();
};

struct Gru {
  static constexpr int64_t gates = 3;
  Gru(const OpContext& context, std::string_view, int64_t size)
      : hidden(size),
        weight(Operand(context, "weight_hh", "")),
        bias(Operand(context, "bias", "")),
        input_bias(Operand(context, "input_bias", "")),
        gate(RecurrentActivationOf(context, "recurrent_activation")),
        output(RecurrentActivationOf(context, "activation")),
        reset_after(context.has("reset_after") && context.Bool("reset_after")) {
    bias.resize(3 * size);
    input_bias.resize(3 * size);
  }

  // The reset gate multiplies either the state before the product with its weight or the product.
  void Step(Vector& sums, std::vector<Vector>& states) const {
    Vector &h = states[0], products(3 * hidden);
    AddProduct(weight, h.data(), hidden, products);
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += input_bias[i];
      products[i] += bias[i];
    }
    Vector reset(hidden), scaled(hidden);
    for (int64_t j = 0; j < hidden; ++j) {
      reset[j] = Activate(gate, sums[j] + products[j]);
      scaled[j] = reset[j] * h[j];
    }
    Vector fresh_products(bias.begin() + hidden, bias.begin() + 2 * hidden);
    if (!reset_after) AddProduct(weight, scaled.data(), hidden, fresh_products, hidden);
    for (int64_t j = 0; j < hidden; ++j) {
      int64_t row = hidden + j;
      double product = reset_after ? reset[j] * products[row] : fresh_products[j];
      double fresh = Activate(output, sums[row] + product);
      double update = Activate(gate, sums[2 * hidden + j] + products[2 * hidden + j]);
      h[j] = (1 - update) * fresh + update * h[j];
    }
  }

  int64_t hidden;
  Vector weight, bias, input_bias;
  RecurrentActivation gate, output;
  bool reset_after;
};

struct Rnn {
  static constexpr int64_t gates = 1;
  Rnn(const OpContext& context, std::string_view, int64_t size)
      : hidden(size),
        weight(Operand(context, "weight_hh", "")),
        bias(Operand(context, "bias", "")),
        output(RecurrentActivationOf(context, "activation")) {
    bias.resize(size);
  }
  void Step(Vector& sums, std::vector<Vector>& states) const {
    Vector& h = states[0];
    AddProduct(weight, h.data(), hidden, sums);
    for (int64_t j = 0; j < hidden; ++j) h[j] = Activate(output, sums[j] + bias[j]);
  }
  int64_t hidden;
  Vector weight, bias;
  RecurrentActivation output;
};

void EvalGru(EvalContext& context) { Unroll<Gru>(context, {"initial_h"}); }
void EvalLstm(EvalContext& context) { Unroll<Lstm>(context, {"initial_h", "initial_c"}); }
void EvalRnn(EvalContext& context) { Unroll<Rnn>(context, {"initial_h"}); }

// Counts every step, even if only the last one is returned.
double WorkOfSteps(const OpContext& context) {
  const Dim& steps = context.shape("x")[0];
  return static_cast<double>(steps.is_constant() ? steps.constant() : 1) * 4 *
         (CountKnown(context, "weight_ih", 0, 1) + CountKnown(context, "weight_hh", 0, 1));
}

Interval RangeActivated(const RangeContext& context, std::string_view param) {
  if (!context.value(param)) return {};
  switch (RecurrentActivationOf(context, param)) {
    case RecurrentActivation::kSigmoid:
    case RecurrentActivation::kHardSigmoid:
      return {0, 1};
    case RecurrentActivation::kTanh:
      return {-1, 1};
    case RecurrentActivation::kRelu:
      return {0, std::numeric_limits<double>::infinity()};
    case RecurrentActivation::kLinear:
      break;
  }
  return {};
}
bool IsShare(Interval gate) { return gate.low >= 0 && gate.high <= 1; }

// The state is interpolated between the previous state and the candidate.
Interval RangeGru(const RangeContext& context, int) {
  if (!IsShare(RangeActivated(context, "recurrent_activation"))) return {};
  return Join(context.in("initial_h"), RangeActivated(context, "activation"));
}
// The third result is the cell, which may grow with each step.
Interval RangeLstm(const RangeContext& context, int result) {
  Interval gate = RangeActivated(context, "recurrent_activation");
  if (result < 2) return gate * RangeActivated(context, "activation");
  if (!IsShare(gate)) return {};
  Interval step = Join(RangeActivated(context, "cell_activation"), {0, 0});
  return Join(context.in("initial_c"), {0, 0}) + Sum(step, context.Size("x", 0));
}
Interval RangeRnn(const RangeContext& context, int) {
  return RangeActivated(context, "activation");
}

std::vector<WeightOperand> WeightsOfRecurrent(const OpContext& context) {
  std::vector<WeightOperand> weights;
  for (std::string_view param : {"weight_ih", "weight_hh", "weight_ih_back", "weight_hh_back"})
    if (context.def().Find(param) >= 0 && context.has(param)) weights.push_back({param, 0, 1});
  return weights;
}

constexpr std::string_view
    kGru =
        "x:T initial_h:T weight_ih:T! weight_hh:T! bias:T!? direction:string!=forward "
        "output_sequence:bool!=false recurrent_activation:string!=sigmoid activation:string!=tanh",
    kLstm =
        "x:T initial_h:T initial_c:T weight_ih:T! weight_hh:T! bias:T!? peephole:T!? "
        "weight_ih_back:T!? weight_hh_back:T!? bias_back:T!? peephole_back:T!? "
        "direction:string!=forward output_sequence:bool!=false "
        "recurrent_activation:string!=sigmoid cell_activation:string!=tanh "
        "activation:string!=tanh clip:T!?",
    kRnn =
        "x:T initial_h:T weight_ih:T! weight_hh:T! bias:T!? direction:string!=forward "
        "output_sequence:bool!=false activation:string!=tanh";

constexpr OpRow kRecurrentRows[] = {
    {.name = "gru",
     .doc = "gated recurrent units; with reset_after, the reset gate scales the product, not the "
            "state",
     .signatures =
         {{{kIos15, kGru, "T=fp32"},
           {kIos17, kGru, "T=fp16/fp32"},
           {kIos18,
            "x:T initial_h:T weight_ih:T! weight_hh:T! bias:T!? direction:string!=forward "
            "output_sequence:bool!=false recurrent_activation:string!=sigmoid "
            "activation:string!=tanh reset_after:bool!? input_bias:T!? | T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferRecurrent(context, 3, 1); },
     .eval = EvalGru,
     .work = WorkOfSteps,
     .weights = WeightsOfRecurrent,
     .range = RangeGru},
    {.name = "lstm",
     .doc = "long short-term memory, in one or both directions",
     .signatures = {{{kIos15, kLstm, "T=fp32"}, {kIos17, kLstm, "T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferRecurrent(context, 4, 2); },
     .eval = EvalLstm,
     .work = WorkOfSteps,
     .weights = WeightsOfRecurrent,
     .range = RangeLstm},
    {.name = "rnn",
     .doc = "simple recurrent units: activation(weight_ih * x + weight_hh * h + bias)",
     .signatures = {{{kIos15, kRnn, "T=fp32"}, {kIos17, kRnn, "T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferRecurrent(context, 1, 1); },
     .eval = EvalRnn,
     .work = WorkOfSteps,
     .weights = WeightsOfRecurrent,
     .range = RangeRnn},
};

}  // namespace

std::span<const OpRow> RecurrentRows() { return kRecurrentRows; }

}  // namespace mlc
