// Pad and CenterCropPad. Negative pads become slices. Positive pads become MIL's pad where that is
// exact and supported, else a gather or a concatenation with the constant.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/ops/value_range.h"

namespace mlc::onnx {

namespace {

enum class Mode { kConstant, kReflect, kEdge, kWrap };

// Elements added before and after each dimension; negative amounts crop.
struct Amounts {
  std::vector<int64_t> before, after;
};

bool IsZero(const Amounts& amounts, int axis) {
  return amounts.before[axis] == 0 && amounts.after[axis] == 0;
}

// Crops by the negative amounts and sets them to zero.
Value* Crop(Node& node, Value* x, Amounts& amounts) {
  size_t rank = amounts.before.size();
  std::vector<int64_t> begin(rank), end(rank);
  std::vector<bool> end_mask(rank, true);
  bool cut = false;
  for (size_t i = 0; i < rank; ++i) {
    const Dim& size = x->type.shape[i];
    if (amounts.before[i] < 0) begin[i] = -amounts.before[i];
    if (amounts.after[i] < 0) {
      end[i] = amounts.after[i];
      end_mask[i] = false;
    }
    int64_t left =
        -std::min<int64_t>(amounts.before[i], 0) - std::min<int64_t>(amounts.after[i], 0);
    if (left > 0 && size.is_constant() && left >= size.constant())
      node.Fail("bad-operand", "negative pads crop {} elements from dimension {} of {}", left, i,
                ToString(x->type.shape));
    cut = cut || left > 0;
    amounts.before[i] = std::max<int64_t>(amounts.before[i], 0);
    amounts.after[i] = std::max<int64_t>(amounts.after[i], 0);
  }
  if (!cut) return x;
  return SliceBetween(node, x, begin, end, end_mask);
}

// MIL's pad computes in floats, so wide integers are padded by concatenation instead.
Value* Surround(Node& node, Value* x, const Amounts& amounts, Value* constant) {
  Value* one = nullptr;
  if (!constant->is_constant())
    one = WithShape(node, constant, std::vector<int64_t>(x->type.rank(), 1));
  for (int axis = 0; axis < x->type.rank(); ++axis) {
    std::vector<Value*> values;
    auto block = [&](int64_t count) {
      if (count == 0) return;
      Sizes shape(node);
      for (int i = 0; i < x->type.rank(); ++i) {
        if (i == axis)
          shape.Add(count);
        else
          shape.AddDim(x, i);
      }
      if (constant->is_constant())
        values.push_back(node.Make("fill", {{"shape", shape.Make()}, {"value", constant}}));
      else
        values.push_back(node.Make("tile", {{"x", one}, {"reps", shape.Make()}}));
    };
    block(amounts.before[axis]);
    values.push_back(x);
    block(amounts.after[axis]);
    if (values.size() > 1) x = Concat(node, values, axis);
  }
  return x;
}

// The indices along dimension `axis` after padding by `before` and `after`, which are int32 scalars
// and may be negative; all of this may be computed at run time.
Value* PlacesAfter(Node& node, Value* x, int axis, Value* before, Value* after) {
  return node.Make("range_1d", {{"start", Binary(node, "mul", before, -1)},
                                {"end", Binary(node, "add", DimOf(node, x, axis), after)},
                                {"step", Tensor::Scalar<int32_t>(1)}});
}

// Gathers the elements at indices `place` of dimension `axis`. Out-of-range indices are handled by
// `mode`; in constant mode they select `constant`.
Value* PadByIndices(Node& node, Value* x, int axis, Value* place, Mode mode,
                    Value* constant = nullptr) {
  Value* size = DimOf(node, x, axis);
  Value* last = Binary(node, "sub", size, 1);
  Value* index = nullptr;
  if (mode == Mode::kWrap) {
    index = Binary(node, "mod", place, size);
  } else if (mode == Mode::kReflect) {
    Value* period = Binary(node, "maximum", Binary(node, "mul", last, 2), 1);
    Value* at = Binary(node, "mod", place, period);
    index = Binary(node, "minimum", at, Binary(node, "sub", period, at));
  } else {
    index = Binary(node, "maximum", Binary(node, "minimum", place, last), 0);
  }
  x = node.Make("gather", {{"x", x}, {"indices", index}, {"axis", axis}});
  if (mode != Mode::kConstant) return x;
  Value* inside = Binary(node, "equal", place, index);
  return Select(node, VectorAlong(node, inside, axis, x->type.rank()), x, constant);
}

Value* Scalar(Node& node, int64_t number) {
  return node.Const(Tensor::Scalar<int32_t>(static_cast<int32_t>(number)));
}

// MIL's reflect and replicate apply to the last two dimensions, so other dimensions are transposed
// there.
Value* PadByImages(Node& node, Value* x, Amounts amounts, Mode mode) {
  int rank = x->type.rank();
  const char* name = mode == Mode::kReflect ? "reflect" : "replicate";
  bool exact = IsFloat(x->type.dtype) && !x->is_constant() && mode != Mode::kWrap;
  std::vector<int> padded;
  for (int axis = 0; axis < rank; ++axis) {
    if (IsZero(amounts, axis)) continue;
    const Dim& size = x->type.shape[axis];
    if (size == Dim(0))
      node.Fail("bad-operand", "an empty dimension cannot be padded by reflection or replication");
    bool far = mode == Mode::kReflect && size.is_constant() &&
               std::max(amounts.before[axis], amounts.after[axis]) >= size.constant();
    if (exact && !far) {
      padded.push_back(axis);
      continue;
    }
    Value* after = Scalar(node, amounts.after[axis]);
    Value* places = PlacesAfter(node, x, axis, Scalar(node, amounts.before[axis]), after);
    x = PadByIndices(node, x, axis, places, mode);
  }
  while (!padded.empty()) {
    int first = std::max(0, static_cast<int>(padded.size()) - 2);
    std::vector<int> now(padded.begin() + first, padded.end());
    padded.resize(first);
    std::vector<int64_t> perm, back(rank), pad;
    bool in_place = now.front() >= rank - 2;
    if (in_place) {
      now.clear();
      for (int i = std::max(rank - 2, 0); i < rank; ++i) now.push_back(i);
    }
    for (int i = 0; i < rank; ++i)
      if (std::ranges::find(now, i) == now.end()) perm.push_back(i);
    perm.insert(perm.end(), now.begin(), now.end());
    for (int i = 0; i < rank; ++i) back[perm[i]] = i;
    for (int axis : now) pad.insert(pad.end(), {amounts.before[axis], amounts.after[axis]});
    if (!in_place) x = Transposed(node, x, perm);
    x = node.Make("pad",
                  {{"x", x}, {"pad", Tensor::Vector(pad)}, {"mode", name}, {"constant_val", 0.0}});
    if (!in_place) x = Transposed(node, x, back);
  }
  return x;
}

// `constant` has the ONNX type of x; null means zero.
Value* PadByConstant(Node& node, Value* x, const Amounts& amounts, Value* constant, DType dtype) {
  if (!constant)
    constant =
        node.Const(Tensor::Full(x->is_constant() ? dtype : lower::RuntimeType(dtype), {}, 0));
  if (!x->is_constant()) constant = lower::AtRunTime(node, constant, dtype);
  bool exact = IsFloat(dtype) && constant->is_constant();
  if (!exact) return Surround(node, x, amounts, constant);
  // Leading dimensions without pads are omitted.
  int rank = x->type.rank(), first = 0;
  while (first < rank && IsZero(amounts, first)) ++first;
  std::vector<int64_t> pad;
  for (int i = first; i < rank; ++i) pad.insert(pad.end(), {amounts.before[i], amounts.after[i]});
  return node.Make(
      "pad",
      {{"x", x}, {"pad", Tensor::Vector(pad)}, {"mode", "constant"}, {"constant_val", constant}});
}

Value* Padded(Node& node, Value* x, Amounts amounts, Mode mode, Value* constant, DType dtype) {
  constexpr int64_t kSane = int64_t{1} << 31;
  for (const std::vector<int64_t>* side : {&amounts.before, &amounts.after})
    for (int64_t amount : *side)
      if (amount <= -kSane || amount >= kSane)
        node.Fail("bad-operand", "pads contain an invalid value {}", amount);
  node.RequireRunTimeType(dtype, "elements");
  for (int i = 0; i < x->type.rank(); ++i)
    if (amounts.before[i] < 0 || amounts.after[i] < 0)
      RequireSize(node, x->type.shape[i] + amounts.before[i] + amounts.after[i], 0, INT32_MAX,
                  fmt::format("dimension {} of {} has an invalid size after padding by {} and {}",
                              i, ToString(x->type.shape), amounts.before[i], amounts.after[i]));
  x = Crop(node, x, amounts);
  bool nothing = true;
  for (int i = 0; i < x->type.rank(); ++i) nothing = nothing && IsZero(amounts, i);
  if (nothing) return x;
  return mode == Mode::kConstant ? PadByConstant(node, x, amounts, constant, dtype)
                                 : PadByImages(node, x, amounts, mode);
}

Mode ModeOf(Node& node) {
  std::string name = node.String("mode", "constant");
  if (name == "constant") return Mode::kConstant;
  if (name == "reflect") return Mode::kReflect;
  if (name == "edge") return Mode::kEdge;
  if (name == "wrap" && node.opset() >= 19) return Mode::kWrap;
  node.Unsupported("mode", "unknown mode \"{}\"", name);
}

// `pads` lists the pads before all `axes`, then those after.
Amounts Halves(Node& node, const std::vector<int64_t>& pads, const std::vector<int64_t>& axes) {
  if (pads.size() != 2 * axes.size())
    node.Fail("bad-operand", "{} pads are given for {} axes, expected two per axis", pads.size(),
              axes.size());
  Amounts amounts{std::vector<int64_t>(node.rank(), 0), std::vector<int64_t>(node.rank(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = node.Axis(axes[i], node.rank());
    amounts.before[axis] = pads[i];
    amounts.after[axis] = pads[axes.size() + i];
  }
  return amounts;
}

std::vector<int64_t> AllAxes(Node& node) { return Consecutive(0, node.rank()); }

void PadAttributes(Node& node) {
  std::vector<int64_t> pads = node.Ints(node.opset() == 1 ? "paddings" : "pads");
  Value* x = node.In(0);
  node.RequireRunTimeType(node.dtype(), "elements");
  Value* constant = node.Const(Tensor::Full(node.dtype(), {}, node.Float("value", 0.0)));
  node.SetAlike(
      Padded(node, x, Halves(node, pads, AllAxes(node)), ModeOf(node), constant, node.dtype()));
}

// Crops x by the negative pads and sets them to zero.
Value* CropAtRunTime(Node& node, Value* x, Value*& before, Value*& after) {
  auto split = [&](Value*& amounts) {
    Value* cut = Binary(node, "maximum", Binary(node, "mul", amounts, -1), 0);
    amounts = Binary(node, "maximum", amounts, 0);
    return cut;
  };
  Value* sum = Binary(node, "add", before, after);
  Value* left = Binary(node, "add", lower::AtRunTime(node, ShapeOf(node, x), DType::kInt64), sum);
  before = Guarded(node, before, Binary(node, "greater_equal", left, 0));
  Value *begin = split(before), *end = split(after);
  end = Binary(node, "sub", ShapeOf(node, x), end);
  return node.Make("slice_by_index", {{"x", x}, {"begin", begin}, {"end", end}});
}

// Pads the given axes by amounts that are computed at run time.
void PadAtRunTime(Node& node, Value* pads, const std::vector<int64_t>& axes, Mode mode,
                  Value* constant) {
  Value* x = lower::AtRunTime(node, node.In(0), node.dtype());
  node.RequireRunTimeType(node.dtype(), "elements");
  int count = static_cast<int>(axes.size());
  pads = lower::AtRunTime(node, pads, DType::kInt64);
  bool exact = IsFloat(node.dtype()) && (!constant || constant->is_constant());
  if (mode != Mode::kConstant || !exact) {
    if (!constant) constant = node.Const(Tensor::Full(x->type.dtype, {}, 0));
    constant = lower::AtRunTime(node, constant, node.dtype());
    for (int i = 0; i < count; ++i) {
      if (ElementOf(pads, i) == Dim(0) && ElementOf(pads, i + count) == Dim(0)) continue;
      int axis = node.Axis(axes[i], node.rank());
      Value* after = Element(node, pads, i + count, 0);
      Value* places = PlacesAfter(node, x, axis, Element(node, pads, i, 0), after);
      x = PadByIndices(node, x, axis, places, mode, constant);
    }
    return node.SetAlike(x);
  }
  // MIL takes the two pads of each dimension next to each other.
  std::vector<int> which(node.rank(), -1);
  for (int i = 0; i < count; ++i) which[node.Axis(axes[i], node.rank())] = i;
  Sizes before(node), after(node), interleaved(node);
  for (int i : which)
    for (auto [side, sizes] : {std::pair{0, &before}, {count, &after}}) {
      if (i < 0)
        sizes->Add(0);
      else
        sizes->Add(pads, i + side);
    }
  Value *front = before.Make(), *back = after.Make();
  if (!IsNatural(pads)) x = CropAtRunTime(node, x, front, back);
  for (int i = 0; i < node.rank(); ++i) {
    interleaved.Add(front, i);
    interleaved.Add(back, i);
  }
  Builder::Args args = {{"x", x}, {"pad", interleaved.Make()}, {"mode", "constant"}};
  if (constant)
    args.emplace_back("constant_val", constant);
  else
    args.emplace_back("constant_val", 0.0);
  node.SetAlike(node.Make("pad", std::move(args)));
}

void Pad(Node& node) {
  Mode mode = ModeOf(node);
  bool some = node.opset() >= 18 && node.HasInput(3);
  if (some) node.WantConstants({{3, "axes"}});
  Value* constant = node.Optional(2);
  if (constant) constant = Single(node, constant, "constant_value");
  std::vector<int64_t> axes = AllAxes(node);
  if (some) axes = node.ConstantInts(3, "axes");
  if (node.Known(1)) {
    Amounts amounts = Halves(node, node.ConstantInts(1, "pads"), axes);
    return node.SetAlike(Padded(node, node.In(0), amounts, mode, constant, node.dtype()));
  }
  Value* pads = AsVector(node, node.In(1));
  int64_t length = VectorLength(node, pads, "pads");
  if (length != 2 * std::ssize(axes))
    node.Fail("bad-operand", "{} pads are given for {} axes, expected two per axis", length,
              axes.size());
  PadAtRunTime(node, pads, axes, mode, constant);
}

Value* CenteredAtRunTime(Node& node, Value* x, int axis, int64_t size) {
  Value* present = DimOf(node, x, axis);
  Value* missing = Binary(node, "sub", Scalar(node, size), present);
  auto half = [&](Value* of) {  // clamps negative pads to zero
    return Binary(node, "floor_div", Binary(node, "maximum", of, 0), 2);
  };
  Value* cut = half(Binary(node, "mul", missing, -1));
  Value* before = Binary(node, "sub", half(missing), cut);
  constexpr int64_t kMostPlaces = int64_t{1} << 24;
  if (size > kMostPlaces) node.Fail("resource-limit", "a dimension of size {} is too large", size);
  std::vector<int32_t> count(size);
  std::iota(count.begin(), count.end(), 0);
  Value* places = Binary(node, "sub", Tensor::Vector(count), before);
  return PadByIndices(node, x, axis, places, Mode::kConstant,
                      node.Const(Tensor::Full(x->type.dtype, {}, 0)));
}

// Crops dimensions that are too long and zero-pads those that are too short, both centered; an odd
// element is at the end.
void CenterCropPad(Node& node) {
  std::vector<int64_t> shape = node.ConstantInts(1, "shape");
  std::vector<int64_t> axes = node.Ints("axes", AllAxes(node));
  if (shape.size() != axes.size())
    node.Fail("bad-operand", "{} sizes are given for {} axes", shape.size(), axes.size());
  Value* x = node.In(0);
  std::vector<int64_t> pads(2 * axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = node.Axis(axes[i], node.rank());
    const Dim& have = node.shape()[axis];
    if (shape[i] < 1 || shape[i] > INT32_MAX)
      node.Fail("bad-operand", "shape contains an invalid value {}", shape[i]);
    if (!have.is_constant()) {
      x = CenteredAtRunTime(node, lower::AtRunTime(node, x, node.dtype()), axis, shape[i]);
      continue;
    }
    int64_t missing = shape[i] - have.constant();
    pads[i] = missing / 2;  // rounds toward zero for cropping and padding
    pads[axes.size() + i] = missing - missing / 2;
  }
  node.SetAlike(Padded(node, x, Halves(node, pads, axes), Mode::kConstant, nullptr, node.dtype()));
}

// Crops the borders [left, top, right, bottom] of an image; with `scale`, takes the given height
// and width after the left and top borders. Experimental operator, removed in opset 10.
void CropBorders(Node& node) {
  std::vector<int64_t> border = node.Ints("border");
  std::vector<int64_t> size = node.Ints("scale", std::vector<int64_t>());
  if (node.rank() != 4) node.Fail("bad-operand", "the input must have four dimensions");
  if (border.size() != 4 || std::ranges::any_of(border, [](int64_t b) { return b < 0; }))
    node.Fail("bad-attribute", "border is [{}], expected four widths", fmt::join(border, ", "));
  if (!size.empty() && size.size() != 2)
    node.Fail("bad-attribute", "scale has {} elements, expected 2", size.size());
  std::vector<int64_t> starts = {border[1], border[0]}, ends;
  for (int d = 0; d < 2; ++d) {
    int64_t end = size.empty() ? -border[3 - d] : starts[d] + size[d];
    ends.push_back(size.empty() && end == 0 ? INT32_MAX : end);
    const Dim& whole = node.shape()[2 + d];
    if (whole.is_constant() && (size.empty() ? starts[d] - end : end) > whole.constant())
      node.Fail("bad-operand", "border and scale exceed the input of shape {}",
                ToString(node.shape()));
  }
  node.SetAlike(node.Apply("Slice", 10,
                           {node.Input(0),
                            {node.Const(Tensor::Vector(starts)), DType::kInt64},
                            {node.Const(Tensor::Vector(ends)), DType::kInt64},
                            {node.Const(Tensor::Vector<int64_t>({2, 3})), DType::kInt64}}));
}

constexpr NodeRow kPadRows[] = {
    {"CenterCropPad", CenterCropPad, 18},
    {"Crop", CropBorders, 1, 9},
    NodeRow("Pad", PadAttributes, 1, 10).Direct(),
    NodeRow("Pad", Pad, 11).Direct(),
};

}  // namespace

std::span<const NodeRow> PadRows() { return kPadRows; }

}  // namespace mlc::onnx
