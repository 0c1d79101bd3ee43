// Loop and Scan.
#include <algorithm>

#include "frontends/onnx/loop_lowering.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

void SetResults(Node& node, const LoopResults& results) {
  int output = 0;
  for (const Bound& bound : results.carried) node.Set(output++, bound);
  for (const Bound& bound : results.joined) node.Set(output++, bound);
}

void Loop(Node& node) {
  LoopSpec what{.body = &node.Subgraph("body"), .conditional = true};
  Value* given[2] = {};
  for (int i : {0, 1})
    if (node.HasInput(i)) given[i] = Single(node, node.In(i), fmt::format("input {}", i));
  if (Tensor trips = node.Known(0)) {
    int64_t count = std::max<int64_t>(trips.Int(0), 0);
    if (count < INT32_MAX) what.known = count;
  } else if (node.HasInput(0)) {
    what.trips = given[0];
  }
  if (what.known) what.trips = node.Const(Tensor::Scalar(static_cast<int32_t>(*what.known)));
  if (Tensor go = node.Known(1))
    what.go = node.Const(Tensor::Scalar<bool>(go.Bool(0)));
  else if (node.HasInput(1))
    what.go = given[1];
  int carried = static_cast<int>(what.body->inputs.size()) - 2;
  if (carried < 0 || node.inputs() > carried + 2)
    node.Fail("bad-graph", "the body has {} loop-carried inputs, but the node has {}", carried,
              node.inputs() - 2);
  for (int i = 0; i < carried; ++i) {
    if (!node.HasInput(i + 2)) node.Fail("bad-graph", "input {} is missing", i + 2);
    what.carried.push_back(node.Input(i + 2));
  }
  int joined = static_cast<int>(what.body->outputs.size()) - 1 - carried;
  what.joined.resize(std::max(joined, 0));
  what.inputs = [&](Builder& b, Value* index, Value* go, const std::vector<Bound>& values) {
    // A body may declare its scalars as vectors of one element; onnxruntime passes them in that
    // shape.
    auto declared = [&](int input, Value* scalar) {
      const auto& shape = what.body->inputs[input].shape;
      return shape && shape->size() == 1 ? Expanded(b, scalar, {0}) : scalar;
    };
    std::vector<Bound> inputs = {{declared(0, index), DType::kInt64},
                                 {declared(1, go), DType::kBool}};
    inputs.insert(inputs.end(), values.begin(), values.end());
    return inputs;
  };
  SetResults(node, LowerLoop(node, what));
}

// Returns x at `index` along dimension `axis`, without that dimension.
Value* At(Builder& b, Value* x, Value* index, int axis) {
  if (!index->is_constant())
    return b.Make("gather", {{"x", x}, {"indices", index}, {"axis", axis}});
  int64_t at = index->constant().Int(0);
  int rank = x->type.rank();
  std::vector<int64_t> begin(rank), end(rank);
  std::vector<bool> whole(rank, true), squeezed(rank);
  begin[axis] = at;
  end[axis] = at + 1;
  whole[axis] = false;
  squeezed[axis] = true;
  return b.Make("slice_by_index", {{"x", x},
                                   {"begin", Ints(begin)},
                                   {"end", Ints(end)},
                                   {"end_mask", Tensor::Vector(whole)},
                                   {"squeeze_mask", Tensor::Vector(squeezed)}});
}

// The scan inputs and outputs of a Scan.
struct Sequences {
  std::vector<Bound> x;
  std::vector<LoopSpec::Joined> given, made;  // `given`: axis and direction of each element of x
};

LoopResults ScanOver(Node& node, const Graph& body, const std::vector<Bound>& states,
                     Sequences sequences) {
  LoopSpec what{.body = &body, .carried = states, .joined = sequences.made};
  for (size_t i = 1; i < sequences.x.size(); ++i)
    RequireEqualSize(node, sequences.x[0].value, sequences.given[0].axis, sequences.x[i].value,
                     sequences.given[i].axis, "lengths of the scan inputs");
  for (const Bound& x : sequences.x) what.around.push_back(x.value);
  const Dim length = sequences.x[0].value->type.shape[sequences.given[0].axis];
  if (length.is_constant()) {
    what.known = length.constant();
    what.trips = node.Const(Tensor::Scalar(static_cast<int32_t>(length.constant())));
  } else {
    Sizes size(node);
    size.AddDim(sequences.x[0].value, sequences.given[0].axis);
    what.trips = AsScalar(node.builder(), size.Make());
  }
  what.inputs = [&](Builder& b, Value* index, Value*, const std::vector<Bound>& carried) {
    std::vector<Bound> inputs = carried;
    for (size_t i = 0; i < sequences.x.size(); ++i) {
      Value* at = index;
      if (sequences.given[i].reverse)
        at = what.known && index->is_constant()
                 ? b.Const(Tensor::Scalar(*what.known - 1 - index->constant().Int(0)))
                 : Binary(b, "sub", Binary(b, "sub", what.trips, 1), at);
      Value* x = sequences.x[i].value;
      if (!index->is_constant()) x = lower::AtRunTime(b, x, sequences.x[i].dtype);
      inputs.push_back({At(b, x, at, sequences.given[i].axis), sequences.x[i].dtype});
    }
    return inputs;
  };
  return LowerLoop(node, what);
}

// Reads attribute `name`, which has one number per sequence; 0 by default.
std::vector<int64_t> ForEach(Node& node, std::string_view name, size_t count) {
  std::vector<int64_t> values = node.Ints(name, std::vector<int64_t>(count));
  if (values.size() != count)
    node.Fail("bad-attribute", "{} has {} elements, expected {}", name, values.size(), count);
  return values;
}

// Splits the inputs from `first` on into states and scan inputs.
std::vector<Bound> ReadInputs(Node& node, const Graph& body, int first, Sequences& sequences) {
  int64_t count = node.Int("num_scan_inputs"), inputs = node.inputs() - first;
  if (count < 1 || count > inputs || inputs != static_cast<int64_t>(body.inputs.size()))
    node.Fail("bad-graph", "the node has {} inputs ({} of them scan inputs), but the body has {}",
              inputs, count, body.inputs.size());
  std::vector<Bound> states;
  for (int i = first; i < node.inputs(); ++i) {
    node.In(i);  // throws if it is not a tensor
    (i < node.inputs() - count ? states : sequences.x).push_back(node.Input(i));
  }
  if (body.outputs.size() < states.size())
    node.Fail("bad-graph", "the body has fewer outputs than there are state variables");
  sequences.given.resize(sequences.x.size());
  sequences.made.resize(body.outputs.size() - states.size());
  return states;
}

void Scan(Node& node) {
  const Graph& body = node.Subgraph("body");
  Sequences s;
  std::vector<Bound> states = ReadInputs(node, body, 0, s);
  std::vector<int64_t> axes = ForEach(node, "scan_input_axes", s.given.size()),
                       directions = ForEach(node, "scan_input_directions", s.given.size());
  for (size_t i = 0; i < s.given.size(); ++i)
    s.given[i] = {node.Axis(axes[i], s.x[i].value->type.rank()), directions[i] != 0};
  axes = ForEach(node, "scan_output_axes", s.made.size());
  directions = ForEach(node, "scan_output_directions", s.made.size());
  for (size_t i = 0; i < s.made.size(); ++i)
    s.made[i] = {static_cast<int>(axes[i]), directions[i] != 0};
  SetResults(node, ScanOver(node, body, states, s));
}

// Before opset 9, dimension 0 of every tensor is the batch. The batch entries are scanned one by
// one, each up to its own length.
void BatchScan(Node& node) {
  const Graph& body = node.Subgraph("body");
  Builder& b = node.builder();
  Sequences s;
  std::vector<Bound> states = ReadInputs(node, body, 1, s);
  std::vector<int64_t> directions = ForEach(node, "directions", s.given.size());
  for (size_t i = 0; i < s.given.size(); ++i) {
    s.given[i].reverse = directions[i] != 0;
    if (s.x[i].value->type.rank() < 2)
      node.Fail("bad-operand", "a scan input has fewer than two dimensions");
  }
  const Shape& shape = s.x[0].value->type.shape;
  if (!shape[0].is_constant())
    throw Error("dynamic-shape", "Scan: the batch size must be constant")
        .Help("fix it with option 'shape' or option 'dim'");
  int64_t batch = shape[0].constant();
  std::vector<int64_t> lengths;
  if (node.HasInput(0)) lengths = node.ConstantInts(0, "sequence_lens");
  if (!lengths.empty() &&
      (static_cast<int64_t>(lengths.size()) != batch || !shape[1].is_constant()))
    node.Fail("bad-operand", "{} sequence lengths do not match a scan input of shape {}",
              lengths.size(), ToString(shape));
  std::vector<std::vector<Value*>> members(states.size() + s.made.size());
  std::vector<DType> dtypes(members.size());
  for (int64_t i = 0; i < batch; ++i) {
    Value* index = node.Const(Tensor::Scalar(i));
    std::vector<Bound> own = states;
    for (Bound& state : own) state.value = At(b, state.value, index, 0);
    Sequences one = s;
    int64_t left = 0;
    for (Bound& x : one.x) {
      x.value = At(b, x.value, index, 0);
      if (lengths.empty()) continue;
      left = shape[1].constant() - lengths[i];
      if (lengths[i] < 1 || left < 0)
        node.Fail("bad-operand", "sequence length {} is out of range; the scan input has length {}",
                  lengths[i], shape[1].ToString());
      std::vector<int64_t> size = StaticDims(x.value->type.shape);
      size[0] = lengths[i];
      x.value = SliceOfSize(b, x.value, std::vector<int64_t>(size.size()), size);
    }
    LoopResults done = ScanOver(node, body, own, one);
    std::vector<Bound> results = done.carried;
    for (Bound& joined : done.joined) {
      if (left > 0) {
        Dims rest = StaticDims(joined.value->type.shape);
        rest[0] = left;
        Value* zeros = node.Const(Tensor::Full(joined.value->type.dtype, rest, 0));
        joined.value = Concat(b, std::vector<Value*>{joined.value, zeros}, 0);
      }
      results.push_back(joined);
    }
    for (size_t k = 0; k < results.size(); ++k) {
      members[k].push_back(results[k].value);
      dtypes[k] = results[k].dtype;
    }
  }
  for (size_t k = 0; k < members.size(); ++k) {
    Value* all = batch == 1 ? Expanded(b, members[k][0], {0})
                            : b.Make("stack", {{"values", members[k]}, {"axis", 0}});
    node.Set(static_cast<int>(k), all, dtypes[k]);
  }
}

constexpr NodeRow kLoopRows[] = {
    NodeRow("Loop", Loop),
    NodeRow("Scan", BatchScan, 8, 8).When("the batch size and the sequence lengths are constant"),
    NodeRow("Scan", Scan, 9),
};

}  // namespace

std::span<const NodeRow> LoopRows() { return kLoopRows; }

}  // namespace mlc::onnx
