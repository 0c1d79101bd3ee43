// Slice, Split and Concat.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Arguments of slice_by_index by dimension; initially they select all of x.
struct Cut {
  explicit Cut(int rank)
      : begin(rank), end(rank), stride(rank, 1), begin_mask(rank, true), end_mask(rank, true) {}
  // A bound that is not constant: an element of a run-time vector.
  struct Bound {
    int64_t number = 0;
    Value* vector = nullptr;
    int index = 0;
  };
  std::vector<Bound> begin, end;
  std::vector<int64_t> stride;
  std::vector<bool> begin_mask, end_mask;

  void SetBegin(int axis, Bound bound) {
    begin[axis] = bound;
    begin_mask[axis] = false;
  }
  void SetEnd(int axis, Bound bound) {
    end[axis] = bound;
    end_mask[axis] = false;
  }
};

Value* Apply(Node& node, Value* x, const Cut& cut) {
  auto any = [](const std::vector<bool>& mask) {
    return std::ranges::find(mask, true) != mask.end();
  };
  auto all = [](const std::vector<bool>& mask) {
    return std::ranges::find(mask, false) == mask.end();
  };
  bool steps = std::ranges::any_of(cut.stride, [](int64_t s) { return s != 1; });
  if (all(cut.begin_mask) && all(cut.end_mask) && !steps) return x;
  auto vector = [&](const std::vector<Cut::Bound>& bounds) -> Operand {
    Sizes sizes(node);
    for (const Cut::Bound& bound : bounds) {
      if (bound.vector)
        sizes.Add(bound.vector, bound.index);
      else
        sizes.Add(bound.number);
    }
    if (sizes.known()) return Tensor::Vector(sizes.numbers());
    return sizes.Make();
  };
  Builder::Args args = {{"x", x}, {"begin", vector(cut.begin)}, {"end", vector(cut.end)}};
  if (steps) args.emplace_back("stride", Tensor::Vector(cut.stride));
  if (any(cut.begin_mask)) args.emplace_back("begin_mask", Tensor::Vector<bool>(cut.begin_mask));
  if (any(cut.end_mask)) args.emplace_back("end_mask", Tensor::Vector<bool>(cut.end_mask));
  return node.Make("slice_by_index", std::move(args));
}

// Handles known bounds. ONNX clamps the start to [0, size] or, for negative steps, to [0, size -
// 1], and the end to [0, size] or [-1, size - 1]. In MIL, an end before index 0 is expressed by a
// mask.
void SetKnown(Cut& cut, int axis, int64_t size, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start = start < -size ? -1 : start + size;
  if (end < 0) end = end < -size ? -1 : end + size;
  bool forward = step > 0;
  start = std::clamp<int64_t>(start, 0, forward ? size : std::max<int64_t>(size - 1, 0));
  end = std::clamp<int64_t>(end, forward ? 0 : -1, forward ? size : std::max<int64_t>(size - 1, 0));
  if (start != (forward ? 0 : size - 1)) cut.SetBegin(axis, {start});
  if (end != (forward ? size : -1)) cut.SetEnd(axis, {end});
}

// Handles a bound that is not completely known: a number if it is constant or at a constant
// distance from the end, otherwise an element of `bounds`. Returns nothing (that is, a mask) if the
// bound is at or beyond `edge`, above or below.
std::optional<Cut::Bound> BoundOf(Node& node, Value* bounds, int index,
                                  const std::optional<std::vector<Dim>>& elements, const Dim& size,
                                  bool above, int64_t edge) {
  if (!elements) return Cut::Bound{0, bounds, index};
  const Dim& bound = (*elements)[index];
  Dim from_end = bound.is_constant() ? bound : bound - size;
  if (!from_end.is_constant()) return Cut::Bound{0, bounds, index};
  int64_t number = from_end.constant();
  if (!bound.is_constant() && number >= 0) {  // size + number, past the last index
    if (above) return std::nullopt;
    return Cut::Bound{Greatest(node, size)};
  }
  if (above ? number >= edge : number <= edge) return std::nullopt;
  return Cut::Bound{number};
}

Value* Sliced(Node& node, Value* x, Value* starts, Value* ends, const std::vector<int64_t>& axes,
              const std::vector<int64_t>& steps) {
  const Shape& shape = x->type.shape;
  auto from = ElementsOf(starts), to = ElementsOf(ends);
  Cut cut(x->type.rank());
  std::vector<bool> seen(shape.size());
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    int axis = node.Axis(axes[i], x->type.rank());
    if (seen[axis]) node.Fail("bad-operand", "duplicate axis {}", axis);
    seen[axis] = true;
    const Dim& size = shape[axis];
    int64_t step = steps[i];
    if (step == 0) node.Fail("bad-operand", "steps must not be 0");
    cut.stride[axis] = step;
    bool known =
        size.is_constant() && from && (*from)[i].is_constant() && to && (*to)[i].is_constant();
    if (known) {
      SetKnown(cut, axis, size.constant(), (*from)[i].constant(), (*to)[i].constant(), step);
      continue;
    }
    // A slice starts at one end and stops at the other.
    bool forward = step > 0;
    int64_t greatest = Greatest(node, size);
    auto start = BoundOf(node, starts, i, from, size, !forward, forward ? -greatest : greatest - 1);
    // ONNX clamps a start before index 0 to index 0; MIL would select nothing for a negative step.
    if (start && !forward && !start->vector && start->number < -1 && !size.is_constant()) {
      if (start->number <= -greatest) {
        start->number = 0;
      } else if (size.Bounds(node.builder().symbols()).low < -start->number) {
        Sizes last(node);
        last.AddDim(x, axis);
        Value* place = Binary(node, "add", last.Make(), start->number);
        start = Cut::Bound{0, Binary(node, "maximum", place, 0), 0};
      }
    }
    if (start && (start->vector || start->number != (forward ? 0 : -1))) cut.SetBegin(axis, *start);
    auto end = BoundOf(node, ends, i, to, size, forward, forward ? greatest : -greatest - 1);
    if (!forward && to && (*to)[i] == Dim(-1) - size) end.reset();
    if (end) cut.SetEnd(axis, *end);
  }
  if (!starts->is_constant() || !ends->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  return Apply(node, x, cut);
}

void SliceAttributes(Node& node) {
  std::vector<int64_t> starts = node.Ints("starts"), ends = node.Ints("ends");
  std::vector<int64_t> axes = node.Ints("axes", Consecutive(0, std::ssize(starts)));
  if (starts.size() != ends.size() || starts.size() != axes.size())
    node.Fail("bad-attribute", "starts, ends and axes have different lengths: {}, {} and {}",
              starts.size(), ends.size(), axes.size());
  Value *end = node.Const(Tensor::Vector(ends)), *begin = node.Const(Tensor::Vector(starts));
  std::vector<int64_t> steps(axes.size(), 1);
  node.SetAlike(Sliced(node, node.In(0), begin, end, axes, steps));
}

void Slice(Node& node) {
  node.WantConstants({{3, "axes"}, {4, "steps"}});
  Value *starts = AsVector(node, node.In(1)), *ends = AsVector(node, node.In(2));
  int64_t count = VectorLength(node, starts, "starts");
  std::vector<int64_t> axes = Consecutive(0, count), steps(count, 1);
  if (node.HasInput(3)) axes = node.ConstantInts(3, "axes");
  if (node.HasInput(4)) steps = node.ConstantInts(4, "steps");
  if (VectorLength(node, ends, "ends") != count || static_cast<int64_t>(axes.size()) != count ||
      static_cast<int64_t>(steps.size()) != count)
    node.Fail("bad-operand",
              "starts, ends, axes and steps have different lengths: {}, {}, {} and {}", count,
              VectorLength(node, ends, "ends"), axes.size(), steps.size());
  node.SetAlike(Sliced(node, node.In(0), starts, ends, axes, steps));
}

void Concat(Node& node) {
  int64_t axis = node.opset() < 4 ? node.Int("axis", 1) : node.Int("axis");
  axis = node.Axis(axis, node.rank());
  // Empty operands are omitted because Core ML has no empty tensors.
  std::vector<Value*> values;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.dtype(i) != node.dtype(0) || node.rank(i) != node.rank(0))
      node.Fail("bad-operand", "the inputs do not match: {} {} and {} {}", Name(node.dtype(0)),
                ToString(node.shape(0)), Name(node.dtype(i)), ToString(node.shape(i)));
    if (node.shape(i)[axis] != Dim(0)) values.push_back(node.In(i));
  }
  if (values.empty()) return node.SetAlike(node.In(0));
  node.SetAlike(values.size() == 1 ? values[0] : Concat(node, values, axis));
}

// Splits into parts whose sizes are computed at run time: slices between the prefix sums of the
// sizes.
void SplitAtRunTime(Node& node, int axis, Value* sizes) {
  Value* ends = node.Make("cumsum", {{"x", sizes}, {"axis", 0}});
  Value* begins = Binary(node, "sub", ends, sizes);
  for (int i = 0; i < node.outputs(); ++i) {
    if (!node.HasOutput(i)) continue;
    Cut cut(node.rank());
    if (i > 0) cut.SetBegin(axis, {0, begins, i});
    if (i + 1 < node.outputs()) cut.SetEnd(axis, {0, ends, i});
    node.Set(i, Apply(node, node.In(0), cut), node.dtype());
  }
}

// The sizes of `count` equal parts of dimension `axis`; the last non-empty part may be smaller.
Value* RunTimeParts(Node& node, int axis, int count) {
  Sizes sizes(node);
  sizes.AddDim(node.In(0), axis);
  Value* size = lower::AtRunTime(node, sizes.Make(), DType::kInt64);
  Value* part = Binary(node, "floor_div", Binary(node, "add", size, count - 1), count);
  Value* before = Binary(node, "mul", part, Ints(Consecutive(0, count)));
  Value* left = Binary(node, "sub", size, before);
  return Binary(node, "minimum", Binary(node, "maximum", left, 0), part);
}

// The sizes are an attribute before opset 13 and input 1 since then; opset 1 allows either. Without
// sizes, the parts are equal; since opset 18 the last one may be smaller.
void Split(Node& node) {
  int count = node.outputs(), axis = node.Axis(node.Int("axis", 0), node.rank());
  const Dim& size = node.shape()[axis];
  std::vector<int64_t> sizes;
  bool given = false;
  if ((node.opset() >= 13 || node.opset() == 1) && node.HasInput(1)) {
    Value* parts = AsVector(node, node.In(1));
    if (parts->is_constant())
      parts = node.builder().Cast(parts, DType::kInt64);  // floats in opset 1
    if (VectorLength(node, parts, "split") != count)
      node.Fail("bad-operand", "{} sizes are given for {} outputs",
                VectorLength(node, parts, "split"), count);
    auto elements = ElementsOf(parts);
    if (!elements || !IsStatic(*elements))
      return SplitAtRunTime(node, axis, AllParts(node, node.In(0), axis, parts));
    sizes = StaticDims(*elements);
    given = true;
  } else if (node.opset() < 13 && node.Has("split")) {
    sizes = node.Ints("split");
    given = true;
  }
  if (node.opset() >= 18 && !given && node.Int("num_outputs", count) != count)
    node.Fail("bad-attribute", "num_outputs is {}, but the node has {} outputs",
              node.Int("num_outputs", count), count);
  if (given && static_cast<int>(sizes.size()) != count)
    node.Fail("bad-attribute", "{} sizes are given for {} outputs", sizes.size(), count);
  if (given) {
    int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    RequireSize(node, size, sum, sum,
                fmt::format("the sum of the sizes, {}, must equal the dimension, {}", sum,
                            size.ToString()));
  }
  if (count == 1) return node.SetAlike(node.In(0));
  if (!given && size.is_constant() && size.constant() % count != 0) {
    if (node.opset() < 18)
      node.Fail("bad-operand", "{} is not divisible by {} outputs", size.constant(), count);
    int64_t part = (size.constant() + count - 1) / count, left = size.constant();
    for (int i = 0; i < count; ++i, left -= sizes.back())
      sizes.push_back(std::clamp<int64_t>(left, 0, part));
    given = true;
  }
  if (!given && node.opset() >= 18 && !DivideExactly(size, count))
    return SplitAtRunTime(node, axis, RunTimeParts(node, axis, count));
  Builder::Args args = {{"x", node.In(0)}, {"axis", axis}};
  if (given)
    args.emplace_back("split_sizes", Tensor::Vector(sizes));
  else
    args.emplace_back("num_splits", count);
  std::vector<Value*> parts = node.builder().MakeAll("split", std::move(args));
  for (int i = 0; i < count; ++i) node.Set(i, parts[i], node.dtype());
}

constexpr NodeRow kSliceRows[] = {
    NodeRow("Concat", Concat).Direct(),
    {"DynamicSlice", Slice, 1, 9},  // experimental; equals Slice of opset 10 without steps
    NodeRow("Slice", SliceAttributes, 1, 9).Direct(),
    NodeRow("Slice", Slice, 10).Direct(),
    NodeRow("Split", Split).Direct(),
};

}  // namespace

std::span<const NodeRow> SliceRows() { return kSliceRows; }

}  // namespace mlc::onnx
