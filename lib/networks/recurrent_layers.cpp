// MIL's gru has reset_after from iOS18 on, but coremltools marks its test against torch as failing
// on devices and builds a loop instead. We do the same.
#include "lib/networks/recurrent_layers.h"

#include <array>

#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"
#include "lib/networks/counted_loop.h"

namespace mlc::networks {

namespace {

// A step has 10 to 20 operations, and so has a whole loop, which however runs on the CPU only.
constexpr int64_t kUnrolledSteps = 2;

// The defaults are those of the operators of the same name. MIL's scaled_tanh has no documented
// factors.
constexpr CellActivationRow kActivations[] = {
    {"affine", 2, 1, 0, "linear"},
    {"elu", 1, 1, 0, ""},
    {"hardsigmoid", 2, 0.2, 0.5, "hard_sigmoid"},
    {"leakyrelu", 1, 0.01, 0, ""},
    {"relu", 0, 0, 0, "relu"},
    {"scaledtanh", 2, 1, 1, "tanh"},
    {"sigmoid", 0, 0, 0, "sigmoid"},
    {"softplus", 0, 0, 0, ""},
    {"softsign", 0, 0, 0, ""},
    {"tanh", 0, 0, 0, "tanh"},
    {"thresholdedrelu", 1, 1, 0, ""},
};

// Returns MIL's name inside a recurrent operator, or an empty string.
std::string_view MilName(const CellActivation& activation) {
  const CellActivationRow& row = *activation.row;
  bool usual = static_cast<float>(row.alpha) == static_cast<float>(activation.alpha) &&
               static_cast<float>(row.beta) == static_cast<float>(activation.beta);
  return usual ? row.mil : std::string_view();
}

Value* Apply(Builder& b, const CellActivation& activation, Value* x) {
  std::string_view name = activation.row->name;
  double alpha = activation.alpha, beta = activation.beta;
  auto scaled = [&](std::string_view op) {
    return b.Make(op, {{"x", x}, {"alpha", alpha}, {"beta", beta}});
  };
  if (name == "affine") return alpha == 1 && beta == 0 ? x : scaled("linear_activation");
  if (name == "hardsigmoid") return scaled("sigmoid_hard");
  if (name == "scaledtanh") return scaled("scaled_tanh");
  if (name == "elu") return b.Make("elu", {{"x", x}, {"alpha", alpha}});
  if (name == "leakyrelu") return b.Make("leaky_relu", {{"x", x}, {"alpha", alpha}});
  if (name == "thresholdedrelu") {  // values above alpha are kept
    Value* above = Binary(b, "greater", x, alpha);
    return b.Make("select", {{"cond", above}, {"a", x}, {"b", 0.0}});
  }
  return b.Make(name, {{"x", x}});
}

// Splits x into equal parts along an axis.
std::vector<Value*> Split(Builder& b, Value* x, int64_t parts, int axis) {
  if (parts == 1) return {x};
  return b.MakeAll("split", {{"x", x}, {"num_splits", parts}, {"axis", axis}});
}

// Reorders gates (or peepholes): result i is part order[i] of x.
Value* Reorder(Builder& b, Value* x, const std::vector<int>& order) {
  if (!x || order.size() == 1) return x;
  std::vector<Value*> parts = Split(b, x, std::ssize(order), 0), sorted;
  for (int part : order) sorted.push_back(parts[part]);
  return Concat(b, sorted, 0);
}

Value* Sum(Builder& b, Value* x, Value* y) {
  if (!x || !y) return x ? x : y;
  return Binary(b, "add", x, y);
}
Value* Product(Builder& b, Value* x, Value* y) { return Binary(b, "mul", x, y); }
// Returns x times the transposed weight.
Value* Times(Builder& b, Value* x, Value* weight) {
  return b.Make("matmul", {{"x", x}, {"y", weight}, {"transpose_y", true}});
}

using Layer = RecurrentLayer;
using Direction = LayerDirection;
using Result = RecurrentResult;

// Implementation step by step. A StepFn takes the part of the gates' sums that depends on x [1,
// batch, gates * H] and the states [1, batch, H], and returns the new states.
using StepFn = std::vector<Value*> (*)(Builder&, const Layer&, const Direction&, Value*,
                                       std::vector<Value*>);

Value* Clipped(Builder& b, const Layer& layer, Value* x) {
  if (!layer.clip) return x;
  return b.Make("clip", {{"x", x}, {"alpha", -*layer.clip}, {"beta", *layer.clip}});
}
Value* Activate(Builder& b, const Layer& layer, const Direction& d, int which, Value* x) {
  return Apply(b, d.activations[which], Clipped(b, layer, x));
}

std::vector<Value*> LstmStep(Builder& b, const Layer& layer, const Direction& d, Value* sums,
                             std::vector<Value*> states) {
  Value *h = states[0], *c = states[1];
  std::vector<Value*> gates = Split(b, Sum(b, sums, Times(b, h, d.recurrence)), 4, -1);
  std::vector<Value*> peepholes(3);
  if (d.peephole) peepholes = Split(b, d.peephole, 3, 0);
  auto seen = [&](int which, Value* gate, Value* cell) {
    return peepholes[which] ? Sum(b, gate, Product(b, peepholes[which], cell)) : gate;
  };
  Value* in = Activate(b, layer, d, 0, seen(0, gates[0], c));
  Value* forget = layer.input_forget ? Binary(b, "sub", 1.0, in)
                                     : Activate(b, layer, d, 0, seen(2, gates[2], c));
  Value* fresh = Activate(b, layer, d, 1, gates[3]);
  Value* added = Product(b, in, fresh);
  c = Sum(b, Product(b, forget, c), added);
  Value* out = Activate(b, layer, d, 0, seen(1, gates[1], c));
  return {Product(b, out, Apply(b, d.activations[2], c)), c};
}

std::vector<Value*> GruStep(Builder& b, const Layer& layer, const Direction& d, Value* sums,
                            std::vector<Value*> states) {
  Value* h = states[0];
  std::vector<Value*> x = Split(b, sums, 3, -1);
  Value *update = nullptr, *reset = nullptr, *hidden = nullptr;
  if (layer.reset_after) {
    Value* product = Sum(b, Times(b, h, d.recurrence), d.recurrence_bias);
    std::vector<Value*> r = Split(b, product, 3, -1);
    update = Activate(b, layer, d, 0, Sum(b, x[0], r[0]));
    reset = Activate(b, layer, d, 0, Sum(b, x[1], r[1]));
    hidden = Sum(b, x[2], Product(b, reset, r[2]));
  } else {
    std::vector<Value*> weights = Split(b, d.recurrence, 3, 0);
    update = Activate(b, layer, d, 0, Sum(b, x[0], Times(b, h, weights[0])));
    reset = Activate(b, layer, d, 0, Sum(b, x[1], Times(b, h, weights[1])));
    hidden = Sum(b, x[2], Times(b, Product(b, reset, h), weights[2]));
  }
  hidden = Activate(b, layer, d, 1, hidden);
  // (1 - update) * hidden + update * h
  Value* change = Binary(b, "sub", h, hidden);
  return {Sum(b, hidden, Product(b, update, change))};
}

std::vector<Value*> RnnStep(Builder& b, const Layer& layer, const Direction& d, Value* sums,
                            std::vector<Value*> states) {
  return {Activate(b, layer, d, 0, Sum(b, sums, Times(b, states[0], d.recurrence)))};
}

struct CellRow {
  std::string_view name, op;  // op: the name of MIL's operator
  StepFn step;
  std::vector<std::string_view> activations;  // the operator's parameters for activations
  std::vector<int> order;                     // the operator's order, as indices of our gates
};
const CellRow& RowOf(Cell cell) {
  static const CellRow kRows[] = {
      {"LSTM",
       "lstm",
       LstmStep,
       {"recurrent_activation", "cell_activation", "activation"},
       {0, 2, 1, 3}},
      {"GRU", "gru", GruStep, {"recurrent_activation", "activation"}, {1, 2, 0}},
      {"RNN", "rnn", RnnStep, {"activation"}, {0}},
  };
  return kRows[static_cast<int>(cell)];
}

// The inputs of a layer that is computed step by step: the sums of all steps [steps, batch, gates *
// H], the states [1, batch, H], and the lengths [1, batch, 1].
struct Start {
  Start(Builder& b, const Layer& layer, const Direction& d) {
    // A GRU that resets after its product uses the recurrence bias separately.
    Value* bias = layer.reset_after ? d.bias : Sum(b, d.bias, d.recurrence_bias);
    sums = Sum(b, Times(b, layer.x, d.weight), bias);
    states = {Expanded(b, d.h, {0})};
    if (d.c) states.push_back(Expanded(b, d.c, {0}));
    if (layer.lengths) lengths = Expanded(b, layer.lengths, {0, 2});
  }
  Value *sums = nullptr, *lengths = nullptr;
  std::vector<Value*> states;
};

// Returns the states after step `t`, and the output of this step: zeros beyond a row's length.
Swept Advance(Builder& b, const Layer& layer, const Direction& d, Value* sums,
              const std::vector<Value*>& states, Value* lengths, Builder::Arg t) {
  Swept next{RowOf(layer.cell).step(b, layer, d, sums, states), nullptr};
  next.y = next.states[0];
  if (!lengths) return next;
  Value* inside = b.Make("greater", {{"x", lengths}, std::move(t)});
  for (size_t i = 0; i < states.size(); ++i)
    next.states[i] = b.Make("select", {{"cond", inside}, {"a", next.states[i]}, {"b", states[i]}});
  next.y = b.Make("select", {{"cond", inside}, {"a", next.y}, {"b", 0.0}});
  return next;
}

Result Finish(Builder& b, const Swept& all) {
  Result result{all.y, Squeezed(b, all.states[0], {0}), nullptr};
  if (all.states.size() > 1) result.c = Squeezed(b, all.states[1], {0});
  return result;
}

Result Unrolled(Builder& b, const Layer& layer, const Direction& d) {
  int64_t steps = layer.x->type.shape[0].constant();
  Start start(b, layer, d);
  std::vector<Value*> each = Split(b, start.sums, steps, 0), y(steps);
  Swept all{start.states, nullptr};
  for (int64_t i = 0; i < steps; ++i) {
    int64_t t = d.reverse ? steps - 1 - i : i;
    Swept next = Advance(b, layer, d, each[t], all.states, start.lengths, {"y", t});
    y[t] = next.y;
    all.states = next.states;
  }
  if (layer.wants_sequence) all.y = steps > 1 ? Concat(b, y, 0) : y[0];
  return Finish(b, all);
}

Result Looped(Builder& b, const Layer& layer, const Direction& d) {
  Start start(b, layer, d);
  auto step = [&](Builder& in, Value* t, const std::vector<Value*>& states) {
    Value* sums = in.Make("gather", {{"x", start.sums}, {"indices", t}, {"axis", 0}});
    return Advance(in, layer, d, sums, states, start.lengths, {"y", t});
  };
  std::vector<Size> element;
  if (layer.wants_sequence) element = {{layer.x, 1}, {d.recurrence, 1}};
  DType dtype = lower::RuntimeType(layer.x->type.dtype);
  return Finish(b, Sweep(b, layer.x, start.states, element, dtype, d.reverse, step));
}

// Returns why MIL's operator cannot be used, or an empty string if it can.
std::string_view WhyNotDirect(const Layer& layer, const std::vector<Direction>& directions) {
  if (layer.lengths) return "sequence_lens";
  if (layer.clip) return "clip";
  if (layer.input_forget) return "input_forget";
  if (layer.reset_after) return "linear_before_reset";
  for (const Direction& d : directions)
    for (const CellActivation& activation : d.activations)
      if (MilName(activation).empty()) return "activations";
  for (const Direction& d : directions)
    for (const Value* value : {d.weight, d.recurrence, d.bias, d.recurrence_bias, d.peephole})
      if (value && !value->is_constant()) return "weights of run time";
  return {};
}

Builder::Args ActivationArgs(const CellRow& row, const std::vector<CellActivation>& activations) {
  Builder::Args args;
  for (size_t i = 0; i < row.activations.size(); ++i)
    args.push_back({row.activations[i], std::string(MilName(activations[i]))});
  return args;
}

// Computes one direction with MIL's operator.
Result Direct(Builder& b, const Layer& layer, const Direction& d) {
  const CellRow& row = RowOf(layer.cell);
  Builder::Args args = ActivationArgs(row, d.activations);
  args.insert(args.end(), {{"x", layer.x},
                           {"initial_h", d.h},
                           {"initial_c", d.c},
                           {"weight_ih", Reorder(b, d.weight, row.order)},
                           {"weight_hh", Reorder(b, d.recurrence, row.order)},
                           {"bias", Reorder(b, Sum(b, d.bias, d.recurrence_bias), row.order)},
                           {"peephole", Reorder(b, d.peephole, {0, 2, 1})},
                           {"direction", d.reverse ? "reverse" : "forward"},
                           {"output_sequence", layer.wants_sequence}});
  std::erase_if(args, [](const Builder::Arg& arg) { return arg.operands.empty(); });
  std::vector<Value*> results = b.MakeAll(row.op, std::move(args));
  Result result{results[0], results[1], results.size() > 2 ? results[2] : nullptr};
  // For a reversed layer, MIL's results are in the order of computation.
  if (layer.wants_sequence && d.reverse)
    result.y = b.Make("reverse", {{"x", result.y}, {"axes", Ints({0})}});
  return result;
}

// Computes both directions of an LSTM with one operator.
std::vector<Result> BothWays(Builder& b, const Layer& layer, const Direction& forward,
                             const Direction& back) {
  const CellRow& row = RowOf(layer.cell);
  Builder::Args args = ActivationArgs(row, forward.activations);
  args.insert(args.end(), {{"x", layer.x},
                           {"initial_h", Concat(b, {forward.h, back.h}, 1)},
                           {"initial_c", Concat(b, {forward.c, back.c}, 1)},
                           {"direction", "bidirectional"},
                           {"output_sequence", layer.wants_sequence}});
  std::array<std::array<std::string_view, 4>, 2> names = {
      {{"weight_ih", "weight_hh", "bias", "peephole"},
       {"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"}}};
  for (int half = 0; half < 2; ++half) {
    const Direction& d = half ? back : forward;
    args.push_back({names[half][0], Reorder(b, d.weight, row.order)});
    args.push_back({names[half][1], Reorder(b, d.recurrence, row.order)});
    args.push_back({names[half][2], Reorder(b, Sum(b, d.bias, d.recurrence_bias), row.order)});
    args.push_back({names[half][3], Reorder(b, d.peephole, {0, 2, 1})});
  }
  std::erase_if(args, [](const Builder::Arg& arg) { return arg.operands.empty(); });
  std::vector<Value*> merged = b.MakeAll("lstm", std::move(args));
  std::vector<Value*> y = Split(b, merged[0], 2, -1), h = Split(b, merged[1], 2, -1),
                      c = Split(b, merged[2], 2, -1);
  return {{y[0], h[0], c[0]}, {y[1], h[1], c[1]}};
}

}  // namespace

const CellActivationRow* FindCellActivation(std::string_view name) {
  for (const CellActivationRow& row : kActivations)
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<Result> Recurrent(Builder& b, const Layer& layer,
                              const std::vector<Direction>& directions) {
  const CellRow& row = RowOf(layer.cell);
  std::string_view why = WhyNotDirect(layer, directions);
  if (why.empty() && layer.cell == Cell::kLstm && directions.size() == 2 &&
      !directions[0].reverse && directions[1].reverse &&
      directions[0].activations == directions[1].activations)
    return BothWays(b, layer, directions[0], directions[1]);
  const Dim& steps = layer.x->type.shape[0];
  bool unroll = steps.is_constant() && steps.constant() <= kUnrolledSteps;
  if (!why.empty())
    b.diagnostics().Decide("decomposition", b.name(),
                           fmt::format("{}: {}: {} is not for MIL's {}", row.name,
                                       unroll ? "unrolled" : "a loop", why, row.op));
  std::vector<Result> results;
  for (const Direction& d : directions)
    results.push_back(why.empty() ? Direct(b, layer, d)
                      : unroll    ? Unrolled(b, layer, d)
                                  : Looped(b, layer, d));
  return results;
}

}  // namespace mlc::networks
