// LSTM, GRU and RNN. One MIL operation for each direction (both directions of an LSTM together)
// where it says the same; else step by step: unrolled where the number of steps is known and small,
// else a while_loop. MIL's gru has reset_after from iOS18 on, but coremltools marks its test
// against torch as failing on devices and makes a loop itself: so do we.
//
// Order of gates: LSTM has input, output, forget, cell in ONNX and input, forget, output, cell in
// MIL; GRU update, reset, hidden in ONNX and reset, hidden, update in MIL. Weights are [directions,
// gates * hidden, width] in ONNX, the bias holds those of input and state one after the other.
#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/onnx/counted_loop.h"
#include "frontends/onnx/need.h"
#include "frontends/onnx/row.h"
#include "lib/ir/sizes.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kUnrolledSteps = 64;

struct Activation {
  std::string name;  // lower case
  double alpha = 0, beta = 0;
  friend bool operator==(const Activation&, const Activation&) = default;
};

struct ActivationRow {
  std::string_view name;
  int parameters;  // how many of alpha and beta it takes
  double alpha, beta;
  std::string_view mil;  // inside MIL's recurrent operators, with these parameters
};
// Defaults are those of the operators of the same name. MIL's scaled_tanh has no documented
// factors.
constexpr ActivationRow kActivations[] = {
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

const ActivationRow& RowOf(const std::string& name) {
  return *std::find_if(std::begin(kActivations), std::end(kActivations),
                       [&](const ActivationRow& row) { return row.name == name; });
}

// MIL's name of it inside a recurrent operator, or nothing.
std::string_view MilName(const Activation& activation) {
  const ActivationRow& row = RowOf(activation.name);
  bool usual = static_cast<float>(row.alpha) == static_cast<float>(activation.alpha) &&
               static_cast<float>(row.beta) == static_cast<float>(activation.beta);
  return usual ? row.mil : std::string_view();
}

Value* Apply(Builder& b, const Activation& activation, Value* x) {
  const std::string& name = activation.name;
  double alpha = activation.alpha, beta = activation.beta;
  auto simple = [&](std::string_view op) { return b.Make(op, {{"x", x}}); };
  auto scaled = [&](std::string_view op) {
    return b.Make(op, {{"x", x}, {"alpha", alpha}, {"beta", beta}});
  };
  if (name == "affine") return alpha == 1 && beta == 0 ? x : scaled("linear_activation");
  if (name == "hardsigmoid") return scaled("sigmoid_hard");
  if (name == "scaledtanh") return scaled("scaled_tanh");
  if (name == "elu") return b.Make("elu", {{"x", x}, {"alpha", alpha}});
  if (name == "leakyrelu") return b.Make("leaky_relu", {{"x", x}, {"alpha", alpha}});
  if (name == "thresholdedrelu") {  // keeps what is above alpha
    Value* above = b.Make("greater", {{"x", x}, {"y", alpha}});
    return b.Make("select", {{"cond", above}, {"a", x}, {"b", 0.0}});
  }
  return simple(name);
}

// The node's operands and attributes, and the values of one direction.
struct Layer {
  int64_t gates, hidden;
  std::vector<std::string> directions;  // "forward", "reverse"
  std::vector<std::vector<Activation>> activations;
  bool batch_first, input_forget = false, reset_after = false;
  std::optional<double> clip;
  Value* x = nullptr;        // [steps, batch, inputs]
  Value* lengths = nullptr;  // int32 [batch]; null: all steps
};

struct Direction {
  Value *weight, *recurrence;     // [gates * hidden, width]
  Value *bias, *recurrence_bias;  // [gates * hidden]; null: none
  Value* peephole = nullptr;      // [3 * hidden]; null: none
  Value *h, *c = nullptr;         // [batch, hidden]
  const std::vector<Activation>* activations;
  bool reverse;
};

// What one direction computes: the sequence [steps, batch, hidden] in the order of x (null where
// nobody wants it) and the final states [batch, hidden].
struct Result {
  Value *y = nullptr, *h = nullptr, *c = nullptr;
};

Value* Slice(Builder& b, Value* x, int64_t begin, int64_t size) {  // of dimension 0
  std::vector<int64_t> first(x->type.rank(), 0), count(x->type.rank(), -1);
  first[0] = begin;
  count[0] = size;
  return b.Make("slice_by_size", {{"x", x}, {"begin", Ints(first)}, {"size", Ints(count)}});
}

Value* Squeeze(Builder& b, Value* x, int64_t axis) {
  return b.Make("squeeze", {{"x", x}, {"axes", Ints({axis})}});
}
Value* Expand(Builder& b, Value* x, int64_t axis) {
  return b.Make("expand_dims", {{"x", x}, {"axes", Ints({axis})}});
}

// Equal parts along an axis.
std::vector<Value*> Split(Builder& b, Value* x, int64_t parts, int axis) {
  if (parts == 1) return {x};
  return b.MakeAll("split", {{"x", x}, {"num_splits", parts}, {"axis", axis}});
}

// Row `d` of dimension 0, without that dimension.
Value* Part(Builder& b, Value* x, int64_t d) {
  return x ? Squeeze(b, Slice(b, x, d, 1), 0) : nullptr;
}

// Gates (or peepholes) in another order: `order` lists which of x's come when.
Value* Reorder(Builder& b, Value* x, const std::vector<int>& order) {
  if (!x || order.size() == 1) return x;
  std::vector<Value*> parts = Split(b, x, static_cast<int64_t>(order.size()), 0), sorted;
  for (int part : order) sorted.push_back(parts[part]);
  return b.Make("concat", {{"values", sorted}, {"axis", 0}});
}

Value* Sum(Builder& b, Value* x, Value* y) {
  if (!x || !y) return x ? x : y;
  return b.Make("add", {{"x", x}, {"y", y}});
}
Value* Product(Builder& b, Value* x, Value* y) { return b.Make("mul", {{"x", x}, {"y", y}}); }
// x times the transposed weight.
Value* Times(Builder& b, Value* x, Value* weight) {
  return b.Make("matmul", {{"x", x}, {"y", weight}, {"transpose_y", true}});
}

std::vector<std::vector<Activation>> ReadActivations(Node& node, size_t directions,
                                                     std::vector<std::string> usual) {
  size_t each = usual.size();
  std::vector<std::string> names = node.Strings("activations", std::vector<std::string>{});
  if (names.empty())
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() != each * directions)
    node.Fail("bad-attribute",
              fmt::format("{} activations, expected {}", names.size(), each * directions));
  std::vector<double> alphas = node.Floats("activation_alpha", std::vector<double>{}),
                      betas = node.Floats("activation_beta", std::vector<double>{});
  // The values belong, in order, to the activations that take one.
  size_t alpha = 0, beta = 0;
  std::vector<std::vector<Activation>> result(directions);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto row = std::find_if(std::begin(kActivations), std::end(kActivations),
                            [&](const ActivationRow& r) { return r.name == name; });
    if (row == std::end(kActivations))
      node.Unsupported("activations", fmt::format("activation \"{}\"", names[i]));
    Activation activation{name, row->alpha, row->beta};
    if (row->parameters > 0 && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (row->parameters > 1 && beta < betas.size()) activation.beta = betas[beta++];
    result[i / each].push_back(activation);
  }
  return result;
}

void CheckShape(Node& node, int input, std::string_view name, const Shape& expected) {
  if (!node.HasInput(input)) return;
  const Shape& shape = node.shape(input);
  std::string text =
      fmt::format("{} is {}, expected {}", name, ToString(shape), ToString(expected));
  if (shape.size() != expected.size()) node.Fail("bad-operand", text);
  for (size_t i = 0; i < shape.size(); ++i) Need(node, shape[i] - expected[i], 0, 0, text);
}

// Lengths are from 0 to the number of steps.
void CheckLengths(Node& node, Layer& layer) {
  const Dim steps = layer.x->type.shape[0];
  if (Tensor known = node.ConstantOrNone(4)) {
    std::vector<int64_t> lengths = known.Ints();
    auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    if (lengths.empty() || *least < 0)
      node.Fail("bad-operand", fmt::format("sequence_lens holds {}", lengths.empty() ? 0 : *least));
    if (Need(node, steps, *most, INT32_MAX,
             fmt::format("a length of {} in a sequence of {} steps", *most, steps.ToString())))
      return;
  }
  Sizes whole(node);
  whole.AddDim(layer.x, 0);
  layer.lengths =
      Within(node, AtRunTime(node, layer.lengths, DType::kInt32),
             node.Const(Tensor::Scalar<int32_t>(0)), AtRunTime(node, whole.Make(), DType::kInt64));
}

Layer ReadLayer(Node& node, int64_t gates, const std::vector<std::string>& usual) {
  Layer layer;
  layer.gates = gates;
  node.Ignore({"output_sequence"});  // before opset 7; an output that is there is wanted
  std::string direction = node.String("direction", "forward");
  if (direction == "bidirectional")
    layer.directions = {"forward", "reverse"};
  else if (direction == "forward" || direction == "reverse")
    layer.directions = {direction};
  else
    node.Unsupported("direction", fmt::format("direction \"{}\"", direction));
  layer.activations = ReadActivations(node, layer.directions.size(), usual);
  if (node.Has("clip")) layer.clip = node.Float("clip");
  if (layer.clip && !(*layer.clip > 0)) layer.clip.reset();
  layer.batch_first = node.Int("layout", 0) != 0;
  int64_t count = static_cast<int64_t>(layer.directions.size());

  if (node.rank(0) != 3 || node.rank(2) != 3)
    node.Fail("bad-operand", fmt::format("X is {} and R {}, expected three dimensions",
                                         ToString(node.shape(0)), ToString(node.shape(2))));
  Dim hidden = node.shape(2)[2];
  if (!hidden.is_constant()) node.Fail("dynamic-shape", "R has no known size");
  layer.hidden = hidden.constant();
  if (node.Int("hidden_size", layer.hidden) != layer.hidden || layer.hidden < 1)
    node.Fail("bad-attribute", fmt::format("hidden_size where R is {}", ToString(node.shape(2))));
  layer.x = node.In(0);
  if (layer.batch_first)
    layer.x = node.Make("transpose", {{"x", layer.x}, {"perm", Ints({1, 0, 2})}});
  const Shape x = layer.x->type.shape;
  Dim rows = gates * layer.hidden;
  CheckShape(node, 1, "W", {count, rows, x[2]});
  CheckShape(node, 2, "R", {count, rows, hidden});
  CheckShape(node, 3, "B", {count, rows * 2});
  CheckShape(node, 4, "sequence_lens", {x[1]});
  for (int input : {5, 6})
    CheckShape(node, input, input == 5 ? "initial_h" : "initial_c",
               layer.batch_first ? Shape{x[1], count, hidden} : Shape{count, x[1], hidden});
  CheckShape(node, 7, "P", {count, hidden * 3});
  if (x[0] == Dim(0)) node.Fail("empty-tensor", "X has no steps");

  layer.lengths = node.Optional(4);
  if (layer.lengths) {
    Agree(node, layer.x, 1, layer.lengths, 0, "the batch of X and the length of sequence_lens");
    CheckLengths(node, layer);
  }
  if (Tensor known = node.ConstantOrNone(4); known && x[0].is_constant()) {
    std::vector<int64_t> lengths = known.Ints();
    if (std::all_of(lengths.begin(), lengths.end(),
                    [&](int64_t length) { return length == x[0].constant(); }))
      layer.lengths = nullptr;
  }
  return layer;
}

// State `d` of input `input`, zeros where there is none: [batch, hidden].
Value* InitialState(Node& node, const Layer& layer, int input, int64_t d) {
  Builder& b = node.builder();
  if (Value* given = node.Optional(input)) {
    if (layer.batch_first) given = b.Make("transpose", {{"x", given}, {"perm", Ints({1, 0, 2})}});
    return Part(b, given, d);
  }
  Sizes sizes(node);
  sizes.AddDim(layer.x, 1);
  sizes.Add(layer.hidden);
  DType dtype = RuntimeType(node.dtype());
  if (sizes.known()) return b.Const(Tensor::Full(dtype, sizes.numbers(), 0));
  return b.Make("fill", {{"shape", sizes.Make()}, {"value", Tensor::Full(dtype, {}, 0)}});
}

Direction ReadDirection(Node& node, const Layer& layer, size_t d, bool has_cell) {
  Builder& b = node.builder();
  int64_t at = static_cast<int64_t>(d), rows = layer.gates * layer.hidden;
  Direction direction{};
  direction.weight = Part(b, node.In(1), at);
  direction.recurrence = Part(b, node.In(2), at);
  if (Value* bias = Part(b, node.Optional(3), at)) {
    direction.bias = Slice(b, bias, 0, rows);
    direction.recurrence_bias = Slice(b, bias, rows, rows);
  }
  if (has_cell) direction.peephole = Part(b, node.Optional(7), at);
  direction.h = InitialState(node, layer, 5, at);
  if (has_cell) direction.c = InitialState(node, layer, 6, at);
  direction.activations = &layer.activations[d];
  direction.reverse = layer.directions[d] == "reverse";
  return direction;
}

// The layer step by step. `step` takes the part of the gates' sums that comes from x [1, batch,
// gates * hidden] and the states [1, batch, hidden], and gives the new states.
using StepFn = std::vector<Value*> (*)(Builder&, const Layer&, const Direction&, Value*,
                                       std::vector<Value*>);

Value* Clipped(Builder& b, const Layer& layer, Value* x) {
  if (!layer.clip) return x;
  return b.Make("clip", {{"x", x}, {"alpha", -*layer.clip}, {"beta", *layer.clip}});
}
Value* Activate(Builder& b, const Layer& layer, const Direction& d, int which, Value* x) {
  return Apply(b, (*d.activations)[which], Clipped(b, layer, x));
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
  Value* forget = layer.input_forget ? b.Make("sub", {{"x", 1.0}, {"y", in}})
                                     : Activate(b, layer, d, 0, seen(2, gates[2], c));
  Value* fresh = Activate(b, layer, d, 1, gates[3]);
  c = Sum(b, Product(b, forget, c), Product(b, in, fresh));
  Value* out = Activate(b, layer, d, 0, seen(1, gates[1], c));
  return {Product(b, out, Apply(b, (*d.activations)[2], c)), c};
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
  Value* change = b.Make("sub", {{"x", h}, {"y", hidden}});
  return {Sum(b, hidden, Product(b, update, change))};
}

std::vector<Value*> RnnStep(Builder& b, const Layer& layer, const Direction& d, Value* sums,
                            std::vector<Value*> states) {
  return {Activate(b, layer, d, 0, Sum(b, sums, Times(b, states[0], d.recurrence)))};
}

// What a layer step by step begins with: the sums of all steps [steps, batch, gates * hidden], the
// states [1, batch, hidden], and the lengths [1, batch, 1].
struct Start {
  Start(Builder& b, const Layer& layer, const Direction& d) {
    // A GRU that resets after its product keeps the state's bias apart.
    Value* bias = layer.reset_after ? d.bias : Sum(b, d.bias, d.recurrence_bias);
    sums = Sum(b, Times(b, layer.x, d.weight), bias);
    states = {Expand(b, d.h, 0)};
    if (d.c) states.push_back(Expand(b, d.c, 0));
    if (layer.lengths)
      lengths = b.Make("expand_dims", {{"x", layer.lengths}, {"axes", Ints({0, 2})}});
  }
  Value *sums = nullptr, *lengths = nullptr;
  std::vector<Value*> states;
};

// The states after step `t`, and what stands for it in the sequence: zeros beyond a row's length.
struct Advanced {
  std::vector<Value*> states;
  Value* y;
};
Advanced Advance(Builder& b, const Layer& layer, const Direction& d, StepFn step, Value* sums,
                 const std::vector<Value*>& states, Value* lengths, Builder::Arg t) {
  Advanced next{step(b, layer, d, sums, states), nullptr};
  next.y = next.states[0];
  if (!lengths) return next;
  Value* inside = b.Make("greater", {{"x", lengths}, std::move(t)});
  for (size_t i = 0; i < states.size(); ++i)
    next.states[i] = b.Make("select", {{"cond", inside}, {"a", next.states[i]}, {"b", states[i]}});
  next.y = b.Make("select", {{"cond", inside}, {"a", next.y}, {"b", 0.0}});
  return next;
}

Result Finish(Builder& b, Value* y, const std::vector<Value*>& states) {
  Result result{y, Squeeze(b, states[0], 0), nullptr};
  if (states.size() > 1) result.c = Squeeze(b, states[1], 0);
  return result;
}

Result Unrolled(Node& node, const Layer& layer, const Direction& d, StepFn step) {
  Builder& b = node.builder();
  int64_t steps = layer.x->type.shape[0].constant();
  Start start(b, layer, d);
  std::vector<Value*> each = Split(b, start.sums, steps, 0), states = start.states, y(steps);
  for (int64_t i = 0; i < steps; ++i) {
    int64_t t = d.reverse ? steps - 1 - i : i;
    Advanced next = Advance(b, layer, d, step, each[t], states, start.lengths, {"y", t});
    y[t] = next.y;
    states = next.states;
  }
  bool joined = node.Wants(0) && steps > 1;
  return Finish(b, joined ? b.Make("concat", {{"values", y}, {"axis", 0}}) : y[0], states);
}

// Variables: the states, and the sequence where it is wanted.
Result Looped(Node& node, const Layer& layer, const Direction& d, StepFn step) {
  Builder& b = node.builder();
  Start start(b, layer, d);
  auto state_count = static_cast<int64_t>(start.states.size());
  Sizes one(node), all(node);
  one.AddDim(layer.x, 0);
  Value* steps = AtRunTime(node, one.Make(), DType::kInt64);
  std::vector<Value*> variables = start.states;
  if (node.Wants(0)) {
    all.AddDim(layer.x, 0);
    all.AddDim(layer.x, 1);
    all.Add(layer.hidden);
    Tensor zero = Tensor::Full(RuntimeType(node.dtype()), {}, 0);
    variables.push_back(all.known() ? b.Const(Tensor::Full(zero.dtype(), all.numbers(), 0))
                                    : b.Make("fill", {{"shape", all.Make()}, {"value", zero}}));
  }
  auto body = [&](Builder& in, Value* done, const std::vector<Value*>& vars) {
    Value* t = done;
    if (d.reverse) {
      t = in.Make("sub", {{"x", steps}, {"y", done}});
      t = in.Make("sub", {{"x", t}, {"y", 1}});
    }
    Value* sums = in.Make("gather", {{"x", start.sums}, {"indices", t}, {"axis", 0}});
    std::vector<Value*> states(vars.begin(), vars.begin() + state_count);
    Advanced next = Advance(in, layer, d, step, sums, states, start.lengths, {"y", t});
    std::vector<Value*> outputs = next.states;
    if (node.Wants(0))
      outputs.push_back(in.Make("scatter", {{"data", vars.back()},
                                            {"indices", t},
                                            {"updates", next.y},
                                            {"axis", 0},
                                            {"mode", "update"}}));
    return outputs;
  };
  std::vector<Value*> results = CountedLoop(b, steps, variables, body);
  return Finish(b, node.Wants(0) ? results.back() : nullptr,
                {results.begin(), results.begin() + state_count});
}

// Why MIL's operator does not do; empty when it does.
std::string_view WhyNotDirect(Node& node, const Layer& layer) {
  if (layer.lengths) return "sequence_lens";
  if (layer.clip) return "clip";
  if (layer.input_forget) return "input_forget";
  if (layer.reset_after) return "linear_before_reset";
  for (const std::vector<Activation>& list : layer.activations)
    for (const Activation& activation : list)
      if (MilName(activation).empty()) return "activations";
  for (int input : {1, 2, 3, 7})
    if (node.HasInput(input) && !node.In(input)->is_constant()) return "weights of run time";
  return {};
}

Builder::Args ActivationArgs(const std::vector<Activation>& activations,
                             std::initializer_list<std::string_view> params) {
  Builder::Args args;
  size_t i = 0;
  for (std::string_view param : params)
    args.push_back({param, std::string(MilName(activations[i++]))});
  return args;
}

// One direction by MIL's operator of this name.
Result Direct(Node& node, const Layer& layer, const Direction& d, std::string_view op,
              Builder::Args args, const std::vector<int>& order) {
  Builder& b = node.builder();
  args.insert(args.end(), {{"x", layer.x},
                           {"initial_h", d.h},
                           {"initial_c", d.c},
                           {"weight_ih", Reorder(b, d.weight, order)},
                           {"weight_hh", Reorder(b, d.recurrence, order)},
                           {"bias", Reorder(b, Sum(b, d.bias, d.recurrence_bias), order)},
                           {"peephole", Reorder(b, d.peephole, {0, 2, 1})},
                           {"direction", d.reverse ? "reverse" : "forward"},
                           {"output_sequence", node.Wants(0)}});
  std::erase_if(args, [](const Builder::Arg& arg) { return arg.operands.empty(); });
  std::vector<Value*> results = b.MakeAll(op, std::move(args));
  Result result{results[0], results[1], results.size() > 2 ? results[2] : nullptr};
  // Of a reversed layer, MIL's results are in the order of computing.
  if (node.Wants(0) && d.reverse)
    result.y = b.Make("reverse", {{"x", result.y}, {"axes", Ints({0})}});
  return result;
}

// Both directions of an LSTM at once.
std::vector<Result> BothWays(Node& node, const Layer& layer, const Direction& forward,
                             const Direction& back, Builder::Args args,
                             const std::vector<int>& order) {
  Builder& b = node.builder();
  auto pair = [&](Value* x, Value* y) {
    return b.Make("concat", {{"values", std::vector<Value*>{x, y}}, {"axis", 1}});
  };
  args.insert(args.end(), {{"x", layer.x},
                           {"initial_h", pair(forward.h, back.h)},
                           {"initial_c", pair(forward.c, back.c)},
                           {"direction", "bidirectional"},
                           {"output_sequence", node.Wants(0)}});
  std::array<std::array<std::string_view, 4>, 2> names = {
      {{"weight_ih", "weight_hh", "bias", "peephole"},
       {"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"}}};
  for (int half = 0; half < 2; ++half) {
    const Direction& d = half ? back : forward;
    args.push_back({names[half][0], Reorder(b, d.weight, order)});
    args.push_back({names[half][1], Reorder(b, d.recurrence, order)});
    args.push_back({names[half][2], Reorder(b, Sum(b, d.bias, d.recurrence_bias), order)});
    args.push_back({names[half][3], Reorder(b, d.peephole, {0, 2, 1})});
  }
  std::erase_if(args, [](const Builder::Arg& arg) { return arg.operands.empty(); });
  std::vector<Value*> merged = b.MakeAll("lstm", std::move(args));
  std::vector<Value*> y = Split(b, merged[0], 2, -1), h = Split(b, merged[1], 2, -1),
                      c = Split(b, merged[2], 2, -1);
  return {{y[0], h[0], c[0]}, {y[1], h[1], c[1]}};
}

// Sets Y [steps, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]; with layout 1
// the batch comes first.
void SetOutputs(Node& node, const Layer& layer, const std::vector<Result>& results) {
  Builder& b = node.builder();
  auto stack = [&](Value* Result::*member, int axis) {
    if (results.size() == 1) return Expand(b, results[0].*member, axis);
    return b.Make("stack", {{"values", std::vector<Value*>{results[0].*member, results[1].*member}},
                            {"axis", axis}});
  };
  if (node.Wants(0)) {
    Value* y = stack(&Result::y, 1);
    if (layer.batch_first) y = b.Make("transpose", {{"x", y}, {"perm", Ints({2, 0, 1, 3})}});
    node.Set(0, y, node.dtype());
  }
  if (node.Wants(1)) node.Set(1, stack(&Result::h, layer.batch_first ? 1 : 0), node.dtype());
  if (node.Wants(2)) node.Set(2, stack(&Result::c, layer.batch_first ? 1 : 0), node.dtype());
}

void Lower(Node& node, const Layer& layer, std::string_view op, StepFn step,
           std::initializer_list<std::string_view> params, const std::vector<int>& order) {
  Builder& b = node.builder();
  bool has_cell = op == "lstm";
  std::vector<Direction> directions;
  for (size_t i = 0; i < layer.directions.size(); ++i)
    directions.push_back(ReadDirection(node, layer, i, has_cell));
  std::string_view why = WhyNotDirect(node, layer);
  if (why.empty()) {
    if (has_cell && directions.size() == 2 && layer.activations[0] == layer.activations[1])
      return SetOutputs(node, layer,
                        BothWays(node, layer, directions[0], directions[1],
                                 ActivationArgs(layer.activations[0], params), order));
    std::vector<Result> results;
    for (const Direction& d : directions)
      results.push_back(Direct(node, layer, d, op, ActivationArgs(*d.activations, params), order));
    return SetOutputs(node, layer, results);
  }
  const Dim& steps = layer.x->type.shape[0];
  bool unroll = steps.is_constant() && steps.constant() <= kUnrolledSteps;
  b.diagnostics().Decide("decomposition", b.name(),
                         fmt::format("{}: {}: {} is not for MIL's {}", node.op(),
                                     unroll ? "unrolled" : "a loop", why, op));
  std::vector<Result> results;
  for (const Direction& d : directions)
    results.push_back(unroll ? Unrolled(node, layer, d, step) : Looped(node, layer, d, step));
  SetOutputs(node, layer, results);
}

void Lstm(Node& node) {
  Layer layer = ReadLayer(node, 4, {"Sigmoid", "Tanh", "Tanh"});
  layer.input_forget = node.Int("input_forget", 0) != 0;
  CheckShape(node, 7, "P", {static_cast<int64_t>(layer.directions.size()), 3 * layer.hidden});
  Lower(node, layer, "lstm", LstmStep, {"recurrent_activation", "cell_activation", "activation"},
        {0, 2, 1, 3});
}

void Gru(Node& node) {
  Layer layer = ReadLayer(node, 3, {"Sigmoid", "Tanh"});
  layer.reset_after = node.Int("linear_before_reset", 0) != 0;
  Lower(node, layer, "gru", GruStep, {"recurrent_activation", "activation"}, {1, 2, 0});
}

void Rnn(Node& node) {
  Layer layer = ReadLayer(node, 1, {"Tanh"});
  Lower(node, layer, "rnn", RnnStep, {"activation"}, {0});
}

constexpr NodeRow kRows[] = {
    NodeRow("GRU", Gru).Direct(),
    NodeRow("LSTM", Lstm).Direct(),
    NodeRow("RNN", Rnn).Direct(),
};

}  // namespace

std::span<const NodeRow> RecurrentRows() { return kRows; }

}  // namespace mlc::onnx
