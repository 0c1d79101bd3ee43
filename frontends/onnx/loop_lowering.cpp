// Lowers loops, either unrolled or as a while_loop with the variables
//
//   index, go (unless always true), loop-carried values ..., scan outputs ...
//
// If the number of iterations is known before the loop, a scan output is a preallocated tensor that
// each iteration writes a part of; otherwise it is a list.
#include "frontends/onnx/loop_lowering.h"

#include <algorithm>
#include <set>
#include <utility>

#include "frontends/onnx/node_transaction.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/scope.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kUnrolledTrips = 64, kUnrolledNodes = 4096;
// Limits for unrolling a body that requires constants, which a while_loop cannot provide.
constexpr int64_t kMostTrips = 1024, kMostNodes = 1 << 16;
// The largest preallocated tensor for scan outputs if the loop may end early.
constexpr int64_t kFilledElements = int64_t{1} << 22;

int64_t CountNodes(const Graph& graph) {
  int64_t count = static_cast<int64_t>(graph.nodes.size());
  for (const NodeDef& node : graph.nodes)
    for (const Attribute& attribute : node.attributes)
      for (const auto& nested : attribute.graphs) count += CountNodes(*nested);
  return count;
}

// The outputs of the body, checked and grouped.
struct Given {
  Value* go = nullptr;  // the condition, a scalar
  std::vector<Bound> carried, joined;
  std::vector<int> axes;  // concatenation axes of the scan outputs, nonnegative
};

// Gives a tensor of unknown sizes the shape that the body declares.
Bound AsDeclared(Builder& b, const Bound& bound, const ValueInfo& declared) {
  if (!bound.value || IsStatic(bound.value->type.shape) || !declared.shape) return bound;
  const Shape& shape = bound.value->type.shape;
  Dims dims;
  for (const Dimension& dim : *declared.shape) dims.push_back(dim.value.value_or(0));
  bool fits = dims.size() == shape.size();
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = dims[i] > 0 && (!shape[i].is_constant() || shape[i] == Dim(dims[i]));
  if (!fits) return bound;
  return {WithShape(b, bound.value, dims), bound.dtype};
}

Given TakeApart(Node& node, const LoopSpec& what, Builder& builder,
                const std::vector<Bound>& results) {
  size_t expected = what.conditional + what.carried.size() + what.joined.size();
  if (results.size() != expected)
    node.Fail("bad-graph", "the body has {} outputs, expected {}", results.size(), expected);
  Given given;
  size_t i = 0;
  if (what.conditional) {
    const Bound& go = results[i++];
    if (!go.value || go.dtype != DType::kBool || Product(go.value->type.shape) != Dim(1))
      node.Fail("bad-graph", "the condition output of the body must be a single bool");
    given.go = AsScalar(builder, go.value);
  }
  for (; i < what.conditional + what.carried.size(); ++i)
    given.carried.push_back(AsDeclared(builder, results[i], what.body->outputs[i]));
  for (; i < expected; ++i) {
    if (!results[i].value)
      node.Fail("bad-graph", "output {} of the body is {}, expected a tensor", i,
                results[i].kind());
    int axis = what.joined[given.joined.size()].axis;
    given.axes.push_back(node.Axis(axis, results[i].value->type.rank() + 1));
    given.joined.push_back(AsDeclared(builder, results[i], what.body->outputs[i]));
  }
  return given;
}

// The scan outputs of a loop that never runs: empty tensors with the shapes that the body would
// produce.
std::vector<Bound> Nothing(Node& node, const LoopSpec& what) {
  std::vector<Bound> joined;
  if (what.joined.empty()) return joined;
  NodeTransaction transaction(node);
  Builder& b = transaction.builder();
  Value* index = b.Const(Tensor::Scalar<int32_t>(0));
  Value* go = b.Const(Tensor::Scalar<bool>(true));
  Given given =
      TakeApart(node, what, b, node.Inline(*what.body, what.inputs(b, index, go, what.carried), b));
  for (size_t i = 0; i < given.joined.size(); ++i) {
    Shape shape = given.joined[i].value->type.shape;
    shape.insert(shape.begin() + given.axes[i], Dim(0));
    if (!IsStatic(shape))
      throw Error("empty-tensor",
                  "{}: the loop has no iterations, so output {} of shape {} is empty", node.op(),
                  what.carried.size() + i, ToString(shape));
    DType dtype = given.joined[i].dtype;
    joined.push_back({node.Const(Tensor::Full(dtype, StaticDims(shape), 0)), dtype});
  }
  return joined;
}

Value* Stacked(Builder& b, const std::vector<Bound>& elements, int axis) {
  std::vector<Value*> values;
  for (const Bound& element : elements) values.push_back(element.value);
  if (values.size() == 1) return Expanded(b, values[0], {axis});
  return b.Make("stack", {{"values", values}, {"axis", axis}});
}

// Unrolls the loop. Returns nothing if the condition is not constant or there are more than `limit`
// iterations.
std::optional<LoopResults> Unrolled(Node& node, const LoopSpec& what, int64_t limit) {
  if (what.go && !what.go->is_constant()) return std::nullopt;
  bool runs = !what.go || what.go->constant().Bool(0);
  NodeTransaction transaction(node);
  Builder& b = transaction.builder();
  LoopResults done{what.carried, {}};
  std::vector<std::vector<Bound>> elements(what.joined.size());
  std::vector<int> axes;
  for (int64_t i = 0; runs && (!what.known || i < *what.known); ++i) {
    if (i == limit) return std::nullopt;
    Value* index = b.Const(Tensor::Scalar<int64_t>(i));
    Value* go = b.Const(Tensor::Scalar<bool>(true));
    Given given = TakeApart(node, what, b,
                            node.Inline(*what.body, what.inputs(b, index, go, done.carried), b));
    if (given.go && !given.go->is_constant()) return std::nullopt;
    runs = !given.go || given.go->constant().Bool(0);
    done.carried = given.carried;
    for (size_t k = 0; k < elements.size(); ++k) elements[k].push_back(given.joined[k]);
    axes = given.axes;
  }
  for (size_t k = 0; k < elements.size() && !elements[k].empty(); ++k) {
    if (what.joined[k].reverse) std::ranges::reverse(elements[k]);
    done.joined.push_back({Stacked(b, elements[k], axes[k]), elements[k].front().dtype});
  }
  transaction.Splice();
  if (done.joined.size() < elements.size()) done.joined = Nothing(node, what);
  return done;
}

// Returns `shape` as an integer vector, taking unknown dimensions from the values in `around`; null
// if one is not found.
Value* ShapeVector(Builder& b, const Shape& shape, const std::vector<Value*>& around) {
  Sizes sizes(b);
  for (const Dim& dim : shape) {
    if (dim.is_constant()) {
      sizes.Add(dim.constant());
      continue;
    }
    bool found = false;
    for (size_t i = 0; !found && i < around.size(); ++i)
      for (int axis = 0; !found && axis < around[i]->type.rank(); ++axis)
        if ((found = around[i]->type.shape[axis] == dim)) sizes.AddDim(around[i], axis);
    if (!found) return nullptr;
  }
  return sizes.known() ? b.Const(Ints(sizes.numbers())) : sizes.Make();
}

// Builds a while_loop.
class Loop {
 public:
  Loop(Node& node, const LoopSpec& what, Builder& b) : node_(node), what_(what), b_(b) {
    for (const Bound& bound : what.carried) AddLeaves(bound, initial_);
    for (Bound& leaf : initial_) {
      if (lower::RuntimeType(leaf.dtype) == DType::kNone)
        node.Fail("unsupported-dtype",
                  "loop-carried values of type {} are not supported at run time", Name(leaf.dtype));
      leaf.value = lower::AtRunTime(b_, leaf.value, leaf.dtype);
      types_.push_back(leaf.value->type);
    }
    carries_go_ = what.go && !what.go->is_constant();
  }

  LoopResults Run() {
    while (!Attempt()) {
    }
    return std::move(repeated_);
  }

 private:
  // The accumulator of a scan output: a preallocated tensor or a list.
  struct Join {
    Value* initial;
    DType dtype;  // ONNX type of the body's tensors
    int axis;
    bool reverse, is_list;
    bool cut = false;  // is sliced to the actual number of iterations
    bool scalar =
        false;  // the list holds vectors of one element, because make_list requires an elem_shape
  };

  // Returns false when loop-carried types have to change; they have then been generalized for the
  // next attempt.
  bool Attempt() {
    NodeTransaction body(node_, b_);
    Builder& in = body.builder();
    Value* index = body.Input(Type::Tensor(DType::kInt32), "index");
    Value* go = carries_go_ ? body.Input(Type::Tensor(DType::kBool), "go")
                            : in.Const(Tensor::Scalar<bool>(true));
    std::vector<Bound> leaves = initial_;
    std::vector<Value*> outputs = {Binary(in, "add", index, 1)};
    for (size_t i = 0; i < leaves.size(); ++i)
      leaves[i].value = body.Input(types_[i], initial_[i].value->name);
    Given given =
        TakeApart(node_, what_, in,
                  node_.Inline(*what_.body, what_.inputs(in, index, go, Carried(leaves)), in));
    if (!carries_go_ && given.go && !(given.go->is_constant() && given.go->constant().Bool(0))) {
      carries_go_ = true;
      return false;
    }
    if (!what_.trips && !carries_go_)
      node_.Fail("bad-graph", "the loop has neither a trip count nor a condition");
    if (carries_go_) outputs.push_back(given.go);

    std::vector<Bound> next;
    for (size_t i = 0; i < given.carried.size(); ++i) {
      if (!SameStructure(given.carried[i], what_.carried[i]))
        throw Error("needs-constant",
                    "{}: the shape depends on data: a sequence or an optional changes "
                    "in each iteration, and the trip count is computed at run time",
                    node_.op());
      AddLeaves(given.carried[i], next);
    }
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i].dtype != initial_[i].dtype)
        node_.Fail("bad-graph",
                   "a loop-carried value has type {} before the body and type {} after it",
                   Name(initial_[i].dtype), Name(next[i].dtype));
      else
        outputs.push_back(lower::AtRunTime(in, next[i].value, next[i].dtype));
    if (Widen(outputs)) return false;
    std::vector<Join> joins = AddJoins(body, index, given, outputs);
    body.Finish(outputs);
    Make(body, joins);
    return true;
  }

  std::vector<Bound> Carried(const std::vector<Bound>& leaves) const {
    std::vector<Bound> carried;
    auto next = leaves.cbegin();
    for (const Bound& bound : what_.carried) carried.push_back(WithLeaves(bound, next));
    return carried;
  }

  size_t first() const { return 1 + carries_go_; }  // index of the first loop-carried variable

  static bool OneElement(const Shape& shape) { return Product(shape) == Dim(1); }

  // Replaces dimensions in which the body's outputs differ from its inputs by unknown ones. A
  // tensor of one element takes the rank that the body gives it.
  bool Widen(const std::vector<Value*>& outputs) {
    bool widened = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      const Shape& made = outputs[first() + i]->type.shape;
      Shape& taken = types_[i].shape;
      if (made.size() != taken.size() && OneElement(made) && OneElement(taken) &&
          reshaped_.insert(i).second) {
        Value*& before = initial_[i].value;
        before = made.empty() ? AsScalar(b_, before) : WithShape(b_, before, StaticDims(made));
        types_[i] = before->type;
        widened = true;
        continue;
      }
      if (made.size() != taken.size())
        throw Error("dynamic-shape",
                    "{}: the shape depends on data: a loop-carried "
                    "value of shape {} becomes {} in each iteration",
                    node_.op(), ToString(taken), ToString(made));
      for (size_t d = 0; d < taken.size(); ++d) {
        if (made[d] == taken[d] || open_.contains(taken[d].ToString())) continue;
        taken[d] = b_.block().FreshSize(b_.name());
        open_.insert(taken[d].ToString());
        widened = true;
      }
    }
    return widened;
  }

  // The number of iterations is `trips`, known before the loop.
  bool counted() const { return !carries_go_; }

  std::vector<Join> AddJoins(NodeTransaction& body, Value* index, const Given& given,
                             std::vector<Value*>& outputs) {
    Builder& in = body.builder();
    std::vector<Join> joins;
    for (size_t k = 0; k < given.joined.size(); ++k) {
      DType dtype = given.joined[k].dtype;
      if (lower::RuntimeType(dtype) == DType::kNone)
        node_.Fail("unsupported-dtype", "scan outputs of type {} are not supported at run time",
                   Name(dtype));
      Value* element = lower::AtRunTime(in, given.joined[k].value, dtype);
      element = in.Cast(element, Held(dtype));
      Join join = MakeJoin(element->type, dtype, given.axes[k], what_.joined[k].reverse);
      Value* variable = body.Input(join.initial->type, b_.name());
      if (join.is_list) {
        if (join.scalar) element = Expanded(in, element, {0});
        outputs.push_back(
            in.Make("list_write", {{"ls", variable}, {"index", index}, {"value", element}}));
      } else {
        Value* at = index;
        if (join.reverse) at = Binary(in, "sub", Binary(in, "sub", what_.trips, 1), at);
        outputs.push_back(in.Make("scatter", {{"data", variable},
                                              {"indices", Expanded(in, at, {0})},
                                              {"updates", Expanded(in, element, {join.axis})},
                                              {"axis", join.axis},
                                              {"mode", "update"}}));
      }
      joins.push_back(join);
    }
    return joins;
  }

  // MIL's scatter does not support bool.
  static DType Held(DType dtype) {
    return dtype == DType::kBool ? DType::kInt32 : lower::RuntimeType(dtype);
  }

  Join MakeJoin(const Type& element, DType dtype, int axis, bool reverse) {
    std::vector<Value*> around = what_.around;
    for (const Bound& leaf : initial_) around.push_back(leaf.value);
    for (const auto& input : b_.block().function->body.inputs) around.push_back(input.get());
    Tensor zero = Tensor::Full(element.dtype, {}, 0);
    Dim size = Product(element.shape);
    bool small = what_.known && size.is_constant() &&
                 *what_.known <= kFilledElements / std::max<int64_t>(size.constant(), 1);
    if ((counted() || (small && !reverse)) && what_.trips) {
      if (Value* shape = ShapeVector(b_, element.shape, around)) {
        // The trip count is an element of the shape.
        int rank = element.rank();
        std::vector<Value*> parts;
        auto add = [&](int begin, int end) {
          if (begin == end) return;
          parts.push_back(b_.Make("slice_by_index",
                                  {{"x", shape}, {"begin", Ints({begin})}, {"end", Ints({end})}}));
        };
        add(0, axis);
        parts.push_back(Trips());
        add(axis, rank);
        Value* sizes = parts[0];
        if (parts.size() > 1) sizes = Concat(b_, parts, 0);
        Value* filled = sizes->is_constant()
                            ? b_.Const(Tensor::Full(zero.dtype(), sizes->constant().Ints(), 0))
                            : b_.Make("fill", {{"shape", sizes}, {"value", zero}});
        return {filled, dtype, axis, reverse, false, !counted()};
      }
    }
    bool scalar = element.shape.empty();
    Operands dims;
    for (const Dim& dim : scalar ? Shape{Dim(1)} : element.shape)
      dims.emplace_back(dim.is_constant()
                            ? Tensor::Scalar<int32_t>(static_cast<int32_t>(dim.constant()))
                            : Tensor::String(LegalName(dim.ToString())));
    Builder::Arg shape("elem_shape", Tensor());
    shape.operands = std::move(dims);
    return {b_.Make("make_list", {{"init_length", Tensor::Scalar<int32_t>(1)},
                                  {"dynamic_length", true},
                                  std::move(shape),
                                  {"dtype", std::string(Name(element.dtype))}}),
            dtype,
            axis,
            reverse,
            true,
            false,
            scalar};
  }

  // The trip count as a vector of one element. A computed count is expressed as the size of a
  // range, from which type inference derives other sizes.
  Value* Trips() {
    if (what_.known) return b_.Const(Ints({*what_.known}));
    Value* trips = Binary(b_, "maximum", what_.trips, 0);
    return b_.Make("shape", {{"x", Counting(b_, trips)}});
  }

  void Make(NodeTransaction& body, const std::vector<Join>& joins) {
    std::vector<Value*> variables = {b_.Const(Tensor::Scalar<int32_t>(0))};
    if (carries_go_)
      variables.push_back(what_.go ? what_.go : b_.Const(Tensor::Scalar<bool>(true)));
    for (const Bound& leaf : initial_) variables.push_back(leaf.value);
    for (const Join& join : joins) variables.push_back(join.initial);

    NodeTransaction condition(node_, b_);
    std::unique_ptr<Block> block = body.Take();
    std::vector<Value*> inputs;
    for (const auto& input : block->inputs)
      inputs.push_back(condition.Input(input->type, input->name));
    Builder& in = condition.builder();
    Value* runs = carries_go_ ? inputs[1] : nullptr;
    if (what_.trips) {
      Value* less = Binary(in, "less", inputs[0], what_.trips);
      runs = runs ? Binary(in, "logical_and", runs, less) : less;
    }
    condition.Finish({runs});
    std::vector<std::unique_ptr<Block>> blocks;
    blocks.push_back(condition.Take());
    blocks.push_back(std::move(block));
    std::vector<Value*> results =
        b_.MakeNested("while_loop", {{"loop_vars", variables}}, std::move(blocks));
    b_.diagnostics().Decide(
        "decomposition", b_.name(),
        fmt::format("{}: lowered to a while_loop; {}", node_.op(),
                    what_.known ? fmt::format("at most {} iterations", *what_.known)
                                : "the trip count is computed at run time"));

    std::vector<Bound> leaves = initial_;
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i].value = results[first() + i];
    repeated_.carried = Carried(leaves);
    for (size_t k = 0; k < joins.size(); ++k)
      repeated_.joined.push_back(
          Joined(joins[k], results[first() + leaves.size() + k], results[0]));
  }

  Bound Joined(const Join& join, Value* value, Value* times) {
    if (join.is_list) {
      value = b_.Make("list_gather", {{"ls", value}, {"indices", Counting(b_, times)}});
      if (join.scalar) value = Squeezed(b_, value, {1});
      if (join.reverse) value = b_.Make("reverse", {{"x", value}, {"axes", Ints({0})}});
      if (join.axis > 0) {
        std::vector<int64_t> perm = Consecutive(1, value->type.rank());
        perm.insert(perm.begin() + join.axis, 0);
        value = Transposed(b_, value, perm);
      }
    } else if (join.cut) {
      int rank = value->type.rank();
      std::vector<bool> to_end(rank, true);
      to_end[join.axis] = false;
      Value* count = Expanded(b_, times, {0});
      value = b_.Make("slice_by_index", {{"x", value},
                                         {"begin", Ints(std::vector<int64_t>(rank))},
                                         {"end", AmongZeros(b_, count, join.axis, rank)},
                                         {"end_mask", Tensor::Vector(to_end)}});
    }
    return {b_.Cast(value, lower::RuntimeType(join.dtype)), join.dtype};
  }

  Node& node_;
  const LoopSpec& what_;
  Builder& b_;
  std::vector<Bound> initial_;  // initial values of loop-carried tensors
  std::vector<Type> types_;     // types of their loop variables
  std::set<std::string> open_;  // sizes that may change in each iteration
  std::set<size_t> reshaped_;   // tensors whose rank has changed; each may change once
  bool carries_go_ = false;
  LoopResults repeated_;
};

// Returns nothing if the body cannot be lowered to a while_loop.
std::optional<LoopResults> TriedLoop(Node& node, const LoopSpec& what) {
  bool& trial = node.scope().import().trial;
  bool before = std::exchange(trial, true);
  NodeTransaction transaction(node);
  std::optional<LoopResults> done;
  try {
    done = Loop(node, what, transaction.builder()).Run();
    transaction.Splice();
  } catch (const Error&) {
  } catch (const Skipped&) {
  } catch (...) {
    trial = before;
    throw;
  }
  trial = before;
  return done;
}

}  // namespace

LoopResults LowerLoop(Node& node, const LoopSpec& what) {
  int64_t nodes = std::max<int64_t>(CountNodes(*what.body), 1);
  int64_t limit = std::min(kUnrolledTrips, std::max<int64_t>(kUnrolledNodes / nodes, 1));
  bool stays = what.go && what.go->is_constant() && !what.go->constant().Bool(0);
  if (stays || (what.known && *what.known <= limit) || (!what.trips && what.conditional))
    if (std::optional<LoopResults> done = Unrolled(node, what, limit)) return std::move(*done);
  // A body may require constants that depend on the iteration, which is possible only when
  // unrolled.
  bool can_unroll = what.known && *what.known <= kMostTrips && *what.known <= kMostNodes / nodes;
  std::optional<LoopResults> done;
  if (can_unroll) {
    done = TriedLoop(node, what);
    if (!done) done = Unrolled(node, what, kMostTrips);
    if (done) return std::move(*done);
  }
  return Loop(node, what, node.builder()).Run();
}

}  // namespace mlc::onnx
