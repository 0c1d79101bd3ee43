// Pad and CenterCropPad. What is cut off is sliced; what is added takes MIL's pad where that is
// exact and can, else indices or blocks of the constant.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/sizes.h"

namespace mlc::onnx {

namespace {

enum class Mode { kConstant, kReflect, kEdge, kWrap };

// Elements added before and after each dimension; negative ones are cut off.
struct Amounts {
  std::vector<int64_t> before, after;
};

bool IsZero(const Amounts& amounts, int axis) {
  return amounts.before[axis] == 0 && amounts.after[axis] == 0;
}

// Cuts what is negative, and makes it zero.
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
      node.Fail("bad-operand", fmt::format("pads cut {} from dimension {} of {}", left, i,
                                           ToString(x->type.shape)));
    cut = cut || left > 0;
    amounts.before[i] = std::max<int64_t>(amounts.before[i], 0);
    amounts.after[i] = std::max<int64_t>(amounts.after[i], 0);
  }
  if (!cut) return x;
  return node.Make("slice_by_index", {{"x", x},
                                      {"begin", Ints(begin)},
                                      {"end", Ints(end)},
                                      {"end_mask", Tensor::Vector<bool>(end_mask)}});
}

// MIL's pad computes in floats: blocks of wide integers are put beside x instead.
Value* Surround(Node& node, Value* x, const Amounts& amounts, Value* constant) {
  Value* one = nullptr;
  if (!constant->is_constant())
    one = node.Make("reshape",
                    {{"x", constant}, {"shape", Ints(std::vector<int64_t>(x->type.rank(), 1))}});
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
    if (values.size() > 1) x = node.Make("concat", {{"values", values}, {"axis", axis}});
  }
  return x;
}

// The index of x that is seen `place` elements after its first (before, when negative).
int64_t Source(int64_t place, int64_t size, Mode mode) {
  if (mode == Mode::kEdge) return std::clamp<int64_t>(place, 0, size - 1);
  if (mode == Mode::kWrap) return ((place % size) + size) % size;
  int64_t period = std::max<int64_t>(2 * (size - 1), 1);
  int64_t at = ((place % period) + period) % period;
  return at < size ? at : period - at;
}

Value* PadByIndices(Node& node, Value* x, const Amounts& amounts, Mode mode, int axis) {
  const Dim& size = x->type.shape[axis];
  if (!size.is_constant())
    node.Unsupported("mode", "needs an input of known size for this padding");
  std::vector<int64_t> indices;
  for (int64_t i = -amounts.before[axis]; i < size.constant() + amounts.after[axis]; ++i)
    indices.push_back(Source(i, size.constant(), mode));
  return node.Make("gather", {{"x", x}, {"indices", Tensor::Vector(indices)}, {"axis", axis}});
}

// MIL's reflect and replicate reach the last two dimensions: others change places with them.
Value* PadByImages(Node& node, Value* x, Amounts amounts, Mode mode) {
  int rank = x->type.rank();
  const char* name = mode == Mode::kReflect ? "reflect" : "replicate";
  bool exact = IsFloat(x->type.dtype) && !x->is_constant() && mode != Mode::kWrap;
  std::vector<int> padded;
  for (int axis = 0; axis < rank; ++axis) {
    if (IsZero(amounts, axis)) continue;
    const Dim& size = x->type.shape[axis];
    if (size == Dim(0)) node.Fail("bad-operand", "there is nothing to pad with");
    bool far = mode == Mode::kReflect && size.is_constant() &&
               std::max(amounts.before[axis], amounts.after[axis]) >= size.constant();
    if (exact && !far)
      padded.push_back(axis);
    else
      x = PadByIndices(node, x, amounts, mode, axis);
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
      if (std::find(now.begin(), now.end(), i) == now.end()) perm.push_back(i);
    perm.insert(perm.end(), now.begin(), now.end());
    for (int i = 0; i < rank; ++i) back[perm[i]] = i;
    for (int axis : now) pad.insert(pad.end(), {amounts.before[axis], amounts.after[axis]});
    if (!in_place) x = node.Make("transpose", {{"x", x}, {"perm", Ints(perm)}});
    x = node.Make("pad",
                  {{"x", x}, {"pad", Tensor::Vector(pad)}, {"mode", name}, {"constant_val", 0.0}});
    if (!in_place) x = node.Make("transpose", {{"x", x}, {"perm", Ints(back)}});
  }
  return x;
}

// `constant` has the ONNX type of x; null is zero.
Value* PadByConstant(Node& node, Value* x, const Amounts& amounts, Value* constant, DType dtype) {
  if (!constant)
    constant = node.Const(Tensor::Full(x->is_constant() ? dtype : RuntimeType(dtype), {}, 0));
  if (!x->is_constant()) constant = AtRunTime(node, constant, dtype);
  bool exact = IsFloat(dtype) && constant->is_constant();
  if (!exact) return Surround(node, x, amounts, constant);
  // Leading dimensions without pads are left out.
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
        node.Fail("bad-operand", fmt::format("pads hold {}", amount));
  if (RuntimeType(dtype) == DType::kNone)
    node.Fail("unsupported-dtype", fmt::format("{} elements", Name(dtype)));
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
  node.Unsupported("mode", fmt::format("mode \"{}\" is unknown", name));
}

// All dimensions, first the pads before them, then those after them.
Amounts Halves(Node& node, const std::vector<int64_t>& pads, const std::vector<int64_t>& axes) {
  if (pads.size() != 2 * axes.size())
    node.Fail("bad-operand", fmt::format("{} pads for {} dimensions", pads.size(), axes.size()));
  Amounts amounts{std::vector<int64_t>(node.rank(), 0), std::vector<int64_t>(node.rank(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = node.Axis(axes[i], node.rank());
    amounts.before[axis] = pads[i];
    amounts.after[axis] = pads[axes.size() + i];
  }
  return amounts;
}

std::vector<int64_t> AllAxes(Node& node) {
  std::vector<int64_t> axes;
  for (int i = 0; i < node.rank(); ++i) axes.push_back(i);
  return axes;
}

void PadAttributes(Node& node) {
  std::vector<int64_t> pads = node.Ints(node.opset() == 1 ? "paddings" : "pads");
  Value* x = node.In(0);
  if (RuntimeType(node.dtype()) == DType::kNone)
    node.Fail("unsupported-dtype", fmt::format("{} elements", Name(node.dtype())));
  Value* constant = node.Const(Tensor::Full(node.dtype(), {}, node.Float("value", 0.0)));
  node.Set(Padded(node, x, Halves(node, pads, AllAxes(node)), ModeOf(node), constant, node.dtype()),
           node.dtype());
}

// Pads that the run time knows, none of them negative: MIL wants both of each dimension together.
void PadAtRunTime(Node& node, Value* pads, Mode mode, Value* constant) {
  bool last_two = true;
  if (auto elements = ElementsOf(pads))
    for (int i = 0; i < node.rank(); ++i)
      for (int side : {i, i + node.rank()}) {
        if ((*elements)[side].Bounds({}).low < 0) node.Constant(1, "pads");
        last_two = last_two && (i + 2 >= node.rank() || (*elements)[side] == Dim(0));
      }
  else
    last_two = false;
  bool exact = IsFloat(node.dtype()) && (!constant || constant->is_constant());
  if (!exact || mode == Mode::kWrap || (mode != Mode::kConstant && !last_two))
    node.Constant(1, "pads");
  Sizes interleaved(node);
  for (int i = mode == Mode::kConstant ? 0 : std::max(node.rank() - 2, 0); i < node.rank(); ++i) {
    interleaved.Add(pads, i);
    interleaved.Add(pads, i + node.rank());
  }
  Value* x = AtRunTime(node, node.In(0), node.dtype());
  const char* name = mode == Mode::kConstant  ? "constant"
                     : mode == Mode::kReflect ? "reflect"
                                              : "replicate";
  Builder::Args args = {{"x", x}, {"pad", interleaved.Make()}, {"mode", name}};
  if (constant)
    args.emplace_back("constant_val", constant);
  else
    args.emplace_back("constant_val", 0.0);
  node.Set(node.Make("pad", std::move(args)), node.dtype());
}

void Pad(Node& node) {
  Mode mode = ModeOf(node);
  if (node.HasInput(3) && !node.Known(3)) node.WantConstants({{1, "pads"}, {3, "axes"}});
  Value* constant = node.Optional(2);
  if (constant && Product(constant->type.shape) != Dim(1))
    node.Fail("bad-operand", "constant_value is no scalar");
  if (constant && constant->type.rank() > 0) constant = node.Make("squeeze", {{"x", constant}});
  std::vector<int64_t> axes = AllAxes(node);
  bool some = node.opset() >= 18 && node.HasInput(3);
  if (some) axes = node.ConstantInts(3, "axes");
  Value* pads = AsVector(node, node.In(1));
  auto elements = ElementsOf(pads);
  if (!some && (!elements || !IsStatic(*elements)) && pads->type.shape[0] == Dim(2 * node.rank()))
    return PadAtRunTime(node, pads, mode, constant);
  Amounts amounts = Halves(node, node.ConstantInts(1, "pads"), axes);
  node.Set(Padded(node, node.In(0), amounts, mode, constant, node.dtype()), node.dtype());
}

// The middle of what is too long, zeros around what is too short; the odd one is at the end.
void CenterCropPad(Node& node) {
  std::vector<int64_t> shape = node.ConstantInts(1, "shape");
  std::vector<int64_t> axes = node.Ints("axes", AllAxes(node));
  if (shape.size() != axes.size())
    node.Fail("bad-operand", fmt::format("{} sizes for {} dimensions", shape.size(), axes.size()));
  std::vector<int64_t> pads(2 * axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& have = node.shape()[node.Axis(axes[i], node.rank())];
    if (!have.is_constant())
      node.Unsupported("axes", "needs an input of known size in the dimensions that change");
    if (shape[i] < 1 || shape[i] > INT32_MAX)
      node.Fail("bad-operand", fmt::format("the shape holds {}", shape[i]));
    int64_t missing = shape[i] - have.constant();
    pads[i] = missing / 2;  // toward zero in both directions
    pads[axes.size() + i] = missing - missing / 2;
  }
  node.Set(
      Padded(node, node.In(0), Halves(node, pads, axes), Mode::kConstant, nullptr, node.dtype()),
      node.dtype());
}

constexpr Row kRows[] = {
    {"CenterCropPad", CenterCropPad, 18},
    Row("Pad", PadAttributes, 1, 10).Direct(),
    Row("Pad", Pad, 11).Direct(),
};

}  // namespace

std::span<const Row> PadRows() { return kRows; }

}  // namespace mlc::onnx
