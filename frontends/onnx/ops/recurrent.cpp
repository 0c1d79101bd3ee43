// LSTM, GRU and RNN. lib/networks/recurrent_layers.h defines the order of the gates. Weights are
// [directions, gates * hidden, width]; the bias concatenates the input bias and the recurrent bias.
#include <algorithm>
#include <cctype>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/networks/recurrent_layers.h"

namespace mlc::onnx {

namespace {

// The attributes of a recurrent layer and the layout of its tensors.
struct Layer {
  networks::RecurrentLayer parts;
  int64_t gates = 0, hidden = 0;
  std::vector<std::string> directions;  // "forward", "reverse"
  std::vector<std::vector<networks::CellActivation>> activations;
  bool batch_first = false;
};

Value* Slice(Builder& b, Value* x, int64_t begin, int64_t size) {  // slices dimension 0
  std::vector<int64_t> first(x->type.rank(), 0), count(x->type.rank(), -1);
  first[0] = begin;
  count[0] = size;
  return SliceOfSize(b, x, first, count);
}

// Returns row `d` of dimension 0, without that dimension.
Value* Part(Builder& b, Value* x, int64_t d) {
  if (!x) return nullptr;
  return Squeezed(b, Slice(b, x, d, 1), {0});
}

std::vector<std::vector<networks::CellActivation>> ReadActivations(Node& node, size_t directions,
                                                                   std::vector<std::string> usual) {
  size_t each = usual.size();
  std::vector<std::string> names = node.Strings("activations", std::vector<std::string>{});
  if (names.empty())
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() != each * directions)
    node.Fail("bad-attribute", "activations has {} elements, expected {}", names.size(),
              each * directions);
  std::vector<double> alphas = node.Floats("activation_alpha", std::vector<double>{}),
                      betas = node.Floats("activation_beta", std::vector<double>{});
  // alpha and beta values are assigned, in order, to the activations that have such a parameter.
  size_t alpha = 0, beta = 0;
  std::vector<std::vector<networks::CellActivation>> result(directions);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const networks::CellActivationRow* row = networks::FindCellActivation(name);
    if (!row) node.Unsupported("activations", "unsupported activation \"{}\"", names[i]);
    networks::CellActivation activation{row, row->alpha, row->beta};
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
  for (size_t i = 0; i < shape.size(); ++i) RequireSize(node, shape[i] - expected[i], 0, 0, text);
}

// Reads the sequence lengths, from 0 to the number of steps; null if all equal the number of steps.
Value* ReadLengths(Node& node, Value*& x) {
  Value* lengths = node.Optional(4);
  if (!lengths) return nullptr;
  RequireEqualSize(node, x, 1, lengths, 0, "batch size of X and length of sequence_lens");
  const Dim steps = x->type.shape[0];
  if (Tensor known = node.ConstantOrNone(4)) {
    std::vector<int64_t> values = known.Ints();
    auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (values.empty() || *least < 0)
      node.Fail("bad-operand", "invalid length {} in sequence_lens", values.empty() ? 0 : *least);
    bool whole = steps.is_constant() && *least == steps.constant();
    if (RequireSize(node, steps, *most, INT32_MAX,
                    fmt::format("length {} in sequence_lens must not exceed the sequence length {}",
                                *most, steps.ToString())))
      return whole ? nullptr : lengths;
  }
  Sizes whole(node);
  whole.AddDim(x, 0);
  Value* most = lower::AtRunTime(node, whole.Make(), DType::kInt64);
  Value* least = node.Const(Tensor::Scalar<int32_t>(0));
  return Within(node, lower::AtRunTime(node, lengths, DType::kInt32), least, most);
}

Layer ReadLayer(Node& node, networks::Cell cell, int64_t gates,
                const std::vector<std::string>& usual) {
  Layer layer{.parts = {.cell = cell, .x = node.In(0)}, .gates = gates};
  node.Ignore({"output_sequence"});  // before opset 7; here an output is computed if it has a name
  std::string direction = node.String("direction", "forward");
  if (direction == "bidirectional")
    layer.directions = {"forward", "reverse"};
  else if (direction == "forward" || direction == "reverse")
    layer.directions = {direction};
  else
    node.Unsupported("direction", "unknown direction \"{}\"", direction);
  layer.activations = ReadActivations(node, layer.directions.size(), usual);
  if (double clip = node.Has("clip") ? node.Float("clip") : 0; clip > 0) layer.parts.clip = clip;
  layer.batch_first = node.Int("layout", 0) != 0;
  layer.parts.wants_sequence = node.HasOutput(0);
  int64_t count = std::ssize(layer.directions);

  if (node.rank(0) != 3 || node.rank(2) != 3)
    node.Fail("bad-operand", "X is {} and R is {}, expected three dimensions",
              ToString(node.shape(0)), ToString(node.shape(2)));
  Dim hidden = node.shape(2)[2];
  if (!hidden.is_constant()) node.Fail("dynamic-shape", "the shape of R must be constant");
  layer.hidden = hidden.constant();
  if (node.Int("hidden_size", layer.hidden) != layer.hidden || layer.hidden < 1)
    node.Fail("bad-attribute", "hidden_size does not match R, which is {}",
              ToString(node.shape(2)));
  if (layer.batch_first) layer.parts.x = Transposed(node, layer.parts.x, {1, 0, 2});
  const Shape x = layer.parts.x->type.shape;
  Dim rows = gates * layer.hidden;
  CheckShape(node, 1, "W", {count, rows, x[2]});
  CheckShape(node, 2, "R", {count, rows, hidden});
  CheckShape(node, 3, "B", {count, rows * 2});
  CheckShape(node, 4, "sequence_lens", {x[1]});
  for (int input : {5, 6})
    CheckShape(node, input, input == 5 ? "initial_h" : "initial_c",
               layer.batch_first ? Shape{x[1], count, hidden} : Shape{count, x[1], hidden});
  CheckShape(node, 7, "P", {count, hidden * 3});
  if (x[0] == Dim(0)) node.Fail("empty-tensor", "the sequence length of X is 0");
  layer.parts.lengths = ReadLengths(node, layer.parts.x);
  return layer;
}

// The initial state for direction `d`, from input `input` or zeros: [batch, hidden].
Value* InitialState(Node& node, const Layer& layer, int input, int64_t d) {
  if (Value* given = node.Optional(input)) {
    if (layer.batch_first) given = Transposed(node, given, {1, 0, 2});
    return Part(node, given, d);
  }
  Sizes sizes(node);
  sizes.AddDim(layer.parts.x, 1);
  sizes.Add(layer.hidden);
  DType dtype = lower::RuntimeType(node.dtype());
  if (sizes.known()) return node.Const(Tensor::Full(dtype, sizes.numbers(), 0));
  return node.Make("fill", {{"shape", sizes.Make()}, {"value", Tensor::Full(dtype, {}, 0)}});
}

networks::LayerDirection ReadDirection(Node& node, const Layer& layer, size_t d) {
  bool has_cell = layer.parts.cell == networks::Cell::kLstm;
  int64_t at = static_cast<int64_t>(d), rows = layer.gates * layer.hidden;
  networks::LayerDirection direction{};
  direction.weight = Part(node, node.In(1), at);
  direction.recurrence = Part(node, node.In(2), at);
  if (Value* bias = Part(node, node.Optional(3), at)) {
    direction.bias = Slice(node, bias, 0, rows);
    direction.recurrence_bias = Slice(node, bias, rows, rows);
  }
  if (has_cell) direction.peephole = Part(node, node.Optional(7), at);
  direction.h = InitialState(node, layer, 5, at);
  if (has_cell) direction.c = InitialState(node, layer, 6, at);
  direction.activations = layer.activations[d];
  direction.reverse = layer.directions[d] == "reverse";
  return direction;
}

// Sets Y [steps, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]. With layout 1
// the batch dimension comes first.
void Lower(Node& node, const Layer& layer) {
  std::vector<networks::LayerDirection> directions;
  for (size_t d = 0; d < layer.directions.size(); ++d)
    directions.push_back(ReadDirection(node, layer, d));
  std::vector<networks::RecurrentResult> results =
      networks::Recurrent(node, layer.parts, directions);
  auto stack = [&](Value* networks::RecurrentResult::*member, int axis) {
    if (results.size() == 1) return Expanded(node, results[0].*member, {axis});
    return node.Make(
        "stack",
        {{"values", std::vector<Value*>{results[0].*member, results[1].*member}}, {"axis", axis}});
  };
  if (node.HasOutput(0)) {
    Value* y = stack(&networks::RecurrentResult::y, 1);
    if (layer.batch_first) y = Transposed(node, y, {2, 0, 1, 3});
    node.Set(0, y, node.dtype());
  }
  int axis = layer.batch_first ? 1 : 0;
  if (node.HasOutput(1)) node.Set(1, stack(&networks::RecurrentResult::h, axis), node.dtype());
  if (node.HasOutput(2)) node.Set(2, stack(&networks::RecurrentResult::c, axis), node.dtype());
}

void Lstm(Node& node) {
  Layer layer = ReadLayer(node, networks::Cell::kLstm, 4, {"Sigmoid", "Tanh", "Tanh"});
  layer.parts.input_forget = node.Int("input_forget", 0) != 0;
  Lower(node, layer);
}

void Gru(Node& node) {
  Layer layer = ReadLayer(node, networks::Cell::kGru, 3, {"Sigmoid", "Tanh"});
  layer.parts.reset_after = node.Int("linear_before_reset", 0) != 0;
  Lower(node, layer);
}

void Rnn(Node& node) { Lower(node, ReadLayer(node, networks::Cell::kRnn, 1, {"Tanh"})); }

constexpr NodeRow kRecurrentRows[] = {
    NodeRow("GRU", Gru).Direct(),
    NodeRow("LSTM", Lstm).Direct(),
    NodeRow("RNN", Rnn).Direct(),
};

}  // namespace

std::span<const NodeRow> RecurrentRows() { return kRecurrentRows; }

}  // namespace mlc::onnx
