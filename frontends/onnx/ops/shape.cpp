// Shape and operators that change a tensor's shape but not its elements.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Returns whether target[place] equals the size of `shape` divided by all other dimensions of
// `target`.
bool IsWhatIsLeft(const Shape& shape, const Shape& target, size_t place) {
  Dim others = 1;
  for (size_t i = 0; i < target.size(); ++i)
    if (i != place) others = others * target[i];
  if (others == Dim(0)) return false;
  std::optional<Dim> left = DivideExactly(Product(shape), others);
  return left && *left == target[place];
}

// Reshapes x to `target`; its non-constant dimensions are entries of `sizes`. `open` is the
// dimension inferred from the others, or -1. A constant shape operand is preferred, with -1 for the
// inferred dimension and 0 for those copied from x; otherwise the shape is a run-time vector.
Value* ReshapeTo(Node& node, Value* x, const Shape& target, Sizes& sizes, int open) {
  const Shape& shape = x->type.shape;
  if (target == shape) return x;
  if (x->is_constant() && IsStatic(target))
    return node.Const(x->constant().Reshaped(StaticDims(target)));
  // MIL's reshape cannot produce scalars.
  if (target.empty()) return Single(node, x, "the input");
  auto unknown = [](const Dim& dim) { return !dim.is_constant(); };
  auto first = std::ranges::find_if(target, unknown);
  if (open < 0 && std::ranges::count_if(target, unknown) == 1 &&
      IsWhatIsLeft(shape, target, first - target.begin()))
    open = static_cast<int>(first - target.begin());
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].is_constant()) {
      numbers.push_back(target[i].constant());
      continue;
    }
    bool kept = target.size() == shape.size() && target[i] == shape[i];
    if (open < 0 && !kept && IsWhatIsLeft(shape, target, i)) open = static_cast<int>(i);
    if (open != static_cast<int>(i) && !kept)
      return node.Make("reshape", {{"x", x}, {"shape", sizes.Make()}});
    numbers.push_back(open == static_cast<int>(i) ? -1 : 0);
  }
  // If a dimension is itself 0, zeros in the shape operand would be ambiguous.
  if (!IsStatic(target) && std::ranges::find(target, Dim(0)) != target.end())
    return node.Make("reshape", {{"x", x}, {"shape", sizes.Make()}});
  return WithShape(node, x, numbers);
}

// Reshapes to an ONNX shape: 0 copies the dimension of x (unless `allow_zero`), and -1 is inferred.
Value* Reshaped(Node& node, Value* x, Value* shape, bool allow_zero) {
  int64_t length = VectorLength(node, shape, "shape");
  if (!shape->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  const Shape& from = x->type.shape;
  auto elements = ElementsOf(shape);
  if (!elements) {  // MIL aligns zeros in the shape with dimensions counted from the end
    if (length != x->type.rank() && !allow_zero) {
      Sizes sizes(node);
      for (int i = 0; i < length; ++i) {
        if (i < x->type.rank())
          sizes.AddDim(x, i);
        else
          sizes.Add(-2);  // no such dimension exists: fails at run time
      }
      Value* zero = Binary(node, "equal", shape, 0);
      shape = Select(node, zero, sizes.Make(), shape);
    }
    return node.Make("reshape", {{"x", x}, {"shape", shape}});
  }
  Shape target;
  Sizes sizes(node);
  int open = -1;
  Dim others = 1;
  for (int i = 0; i < length; ++i) {
    const Dim& element = (*elements)[i];
    if (element == Dim(-1)) {
      if (open >= 0) node.Fail("bad-operand", "shape contains more than one -1");
      open = i;
      target.emplace_back(1);
      sizes.Add(-1);
      continue;
    }
    if (element == Dim(0) && !allow_zero) {
      if (i >= static_cast<int>(from.size()))
        node.Fail("bad-operand", "element {} of shape is 0, but the input is {}", i,
                  ToString(from));
      target.push_back(from[i]);
      sizes.AddDim(x, i);
    } else {
      if (element.is_constant() && element.constant() < 0)
        node.Fail("bad-operand", "shape contains an invalid value {}", element.constant());
      target.push_back(element);
      sizes.Add(shape, i);
    }
    others = others * target.back();
  }
  auto mismatch = [&] {
    node.Fail("bad-operand", "a tensor of shape {} cannot be reshaped to {}", ToString(from),
              ToString(*elements));
  };
  Dim total = Product(from);
  if (open >= 0) {
    if (others == Dim(0)) mismatch();
    std::optional<Dim> left = DivideExactly(total, others);
    if (!left && total.is_constant() && others.is_constant()) mismatch();
    target[open] = left ? *left : FloorDiv(total, others);
    if (target[open].is_constant()) {
      sizes.Set(open, target[open].constant());
      open = -1;
    }
  } else if (Dim difference = total - others; difference.is_constant() && difference != Dim(0)) {
    mismatch();
  }
  return ReshapeTo(node, x, target, sizes, open);
}

void ReshapeAttribute(Node& node) {
  Value* shape = node.Const(Tensor::Vector(node.Ints("shape")));
  node.SetAlike(Reshaped(node, node.In(0), shape, false));
}

void Reshape(Node& node) {
  bool allow_zero = node.Int("allowzero", 0) != 0;
  node.SetAlike(Reshaped(node, node.In(0), node.In(1), allow_zero));
}

void Flatten(Node& node) {
  int rank = node.rank();
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) node.Axis(axis, rank);
  if (axis < 0) axis += rank;
  const Shape& x = node.shape();
  Dim rows = Product(Shape(x.begin(), x.begin() + axis));
  Dim columns = Product(Shape(x.begin() + axis, x.end()));
  auto number = [](const Dim& dim) { return dim.is_constant() ? dim.constant() : -1; };
  if (!rows.is_constant() && !columns.is_constant())
    return node.SetAlike(node.Make("flatten2d", {{"x", node.In(0)}, {"axis", axis}}));
  if (rank == 2 && x[0] == rows && x[1] == columns) return node.SetAlike(node.In(0));
  node.SetAlike(WithShape(node, node.In(0), {number(rows), number(columns)}));
}

void Transpose(Node& node) {
  int rank = node.rank();
  std::vector<int64_t> reversed;
  for (int i = rank; i-- > 0;) reversed.push_back(i);
  std::vector<int64_t> perm = node.Ints("perm", reversed);
  if (static_cast<int>(perm.size()) != rank)
    node.Fail("bad-attribute", "perm has {} elements, but the input is {}", perm.size(),
              ToString(node.shape()));
  bool same = true;
  for (int i = 0; i < rank; ++i) {
    perm[i] = node.Axis(perm[i], rank);
    same = same && perm[i] == i;
  }
  node.SetAlike(same ? node.In(0) : Transposed(node, node.In(0), perm));
}

// Axes of Squeeze and Unsqueeze, which are an attribute before opset 13.
std::vector<int64_t> AxesOf(Node& node) {
  if (node.opset() >= 13) return node.ConstantInts(1, "axes");
  return node.Ints("axes");
}

void Squeeze(Node& node) {
  bool given = node.opset() >= 13 ? node.HasInput(1) : node.Has("axes");
  std::vector<int64_t> wanted;
  if (given) wanted = AxesOf(node);
  Value* x = node.In(0);
  const Shape& shape = x->type.shape;
  std::vector<bool> drop(shape.size());
  if (given) {
    for (int64_t axis : wanted) drop[node.Axis(axis, node.rank())] = true;
  } else {
    for (size_t i = 0; i < shape.size(); ++i) drop[i] = shape[i] == Dim(1);
  }
  std::vector<int64_t> axes;
  bool known = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::string what = fmt::format("dimension {} of {}", i, ToString(shape));
    // Without axes, a dimension that is 1 only at run time would change the rank.
    if (!given && !shape[i].is_constant())
      RequireSize(node, shape[i], 2, INT32_MAX, what + " must not be 1");
    if (!drop[i]) continue;
    axes.push_back(static_cast<int64_t>(i));
    known =
        RequireSize(node, shape[i], 1, 1, what + " must be 1") && known && shape[i].is_constant();
  }
  if (axes.empty()) return node.SetAlike(x);
  if (known) return node.SetAlike(Squeezed(node, x, axes));
  Sizes rest(node);
  for (size_t i = 0; i < shape.size(); ++i)
    if (!drop[i]) rest.AddDim(x, static_cast<int>(i));
  if (rest.size() > 0)
    return node.SetAlike(node.Make("reshape", {{"x", x}, {"shape", rest.Make()}}));
  x = WithShape(node, x, {1});
  node.SetAlike(AsScalar(node.builder(), x));
}

void Unsqueeze(Node& node) {
  std::vector<int64_t> axes = AxesOf(node);
  int rank = node.rank() + static_cast<int>(axes.size());
  for (int64_t& axis : axes) axis = node.Axis(axis, rank);
  if (axes.empty()) return node.SetAlike(node.In(0));
  node.SetAlike(Expanded(node, node.In(0), axes));
}

// Multiplies x by ones of the given shape, which broadcasts and rejects incompatible shapes.
Value* TimesOnes(Node& node, Value* x, Value* shape) {
  DType dtype = x->type.dtype;
  Value* ones = node.Make("fill", {{"shape", shape}, {"value", Tensor::Full(dtype, {}, 1)}});
  return node.Make(dtype == DType::kBool ? "logical_and" : "mul", {{"x", x}, {"y", ones}});
}

// Broadcasts to a shape that may itself contain ones. MIL has no such operator, so dimensions of
// size 1 are tiled.
void Expand(Node& node) {
  Value *x = node.In(0), *shape = node.In(1);
  int length = static_cast<int>(VectorLength(node, shape, "shape"));
  int rank = std::max(node.rank(), length), lead = rank - length;
  if (!shape->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  if (x->is_constant() && x->constant().size() == 1 && rank == length)
    return node.SetAlike(
        node.Make("fill", {{"shape", shape}, {"value", node.Const(x->constant().Reshaped({}))}}));
  if (node.rank() < rank) x = Expanded(node, x, Consecutive(0, rank - node.rank()));
  const Shape from = x->type.shape;
  Sizes reps(node);
  bool same = true, certain = true;
  for (int i = 0; i < rank; ++i) {
    Dim want = i < lead ? Dim(1) : ElementOf(shape, i - lead).value_or(Dim(-1));
    bool kept = want == Dim(1) || want == from[i];
    same = same && kept;
    if (kept) {
      reps.Add(1);
    } else if (from[i] == Dim(1)) {
      reps.Add(shape, i - lead);
    } else {  // either size may be 1 at run time
      certain = false;
      if (from[i].is_constant() && want.is_constant() && want != Dim(-1))
        node.Fail("bad-operand", "dimension {} of {} does not broadcast to {}", i, ToString(from),
                  want.ToString());
      if (want.is_constant() && want != Dim(-1))
        RequireSize(node, from[i], 1, want.constant(),
                    fmt::format("dimension {} of {} must broadcast to {}", i, ToString(from),
                                want.ToString()));
    }
  }
  if (same) return node.SetAlike(x);
  if (!certain)
    return node.SetAlike(TimesOnes(node, lower::AtRunTime(node, x, node.dtype()), shape));
  x = node.Make("tile", {{"x", x}, {"reps", reps.Make()}});
  // Type inference knows either all repetitions or none; the shape is declared so that one unknown
  // repetition does not hide the others.
  std::vector<int64_t> known;
  for (int i = 0; i < rank; ++i) {
    Dim size = i < lead ? from[i] : ElementOf(shape, i - lead).value_or(Dim(-1));
    if (size == Dim(1)) size = from[i];
    known.push_back(size.is_constant() ? size.constant() : -1);
  }
  if (!IsStatic(x->type.shape) && std::ranges::count(known, -1) == 1 && rank > 1 &&
      !ElementsOf(shape))
    x = WithShape(node, x, known);
  node.SetAlike(x);
}

void Tile(Node& node) {
  Value *x = node.In(0), *reps = node.In(1);
  if (VectorLength(node, reps, "repeats") != node.rank())
    node.Fail("bad-operand", "repeats has {} elements, but the input is {}",
              VectorLength(node, reps, "repeats"), ToString(node.shape()));
  if (!reps->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  auto elements = ElementsOf(reps);
  bool once =
      elements && std::ranges::all_of(*elements, [](const Dim& dim) { return dim == Dim(1); });
  node.SetAlike(once ? x : node.Make("tile", {{"x", x}, {"reps", reps}}));
}

// Opset 1 tiles along a single axis.
void TileAxis(Node& node) {
  std::vector<int64_t> reps(node.rank(), 1);
  node.WantConstants({{1, "tiles"}, {2, "axis"}});
  std::vector<int64_t> tiles = node.ConstantInts(1, "tiles"), axis = node.ConstantInts(2, "axis");
  if (tiles.size() != 1 || axis.size() != 1)
    node.Fail("bad-operand", "tiles and axis must be single numbers");
  reps[node.Axis(axis[0], node.rank())] = tiles[0];
  node.SetAlike(node.Make("tile", {{"x", node.In(0)}, {"reps", Tensor::Vector(reps)}}));
}

void ShapeRange(Node& node) {
  int64_t rank = node.rank();
  auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t begin = place(node.Int("start", 0)), end = place(node.Int("end", rank));
  Sizes sizes(node);
  for (int64_t i = begin; i < end; ++i) sizes.AddDim(node.In(0), static_cast<int>(i));
  node.Set(sizes.Make(), DType::kInt64);
}

void Size(Node& node) {
  Dim size = Product(node.shape());
  if (size.is_constant())
    return node.Set(node.Const(Tensor::Scalar(size.constant())), DType::kInt64);
  node.Set(node.Make("reduce_prod", {{"x", ShapeOf(node, node.In(0))}}), DType::kInt64);
}

void ConstantOfShape(Node& node) {
  Tensor value = Tensor::Scalar(0.0f);
  if (node.Has("value")) value = node.TensorAttribute("value");
  if (value.size() != 1) node.Fail("bad-attribute", "value must have a single element");
  Value* shape = node.In(0);
  VectorLength(node, shape, "shape");
  Value* element = node.Const(value.Reshaped({}));
  if (!shape->is_constant()) element = lower::AtRunTime(node, element, value.dtype());
  node.Set(node.Make("fill", {{"shape", shape}, {"value", element}}), value.dtype());
}

void Range(Node& node) {
  Value* bounds[3];
  for (int i = 0; i < 3; ++i) {
    if (node.dtype(i) != node.dtype(0))
      node.Fail("bad-operand", "the inputs have different types, {} and {}", Name(node.dtype(0)),
                Name(node.dtype(i)));
    bounds[i] = Single(node, node.In(i), "a bound");
  }
  node.SetAlike(
      node.Make("range_1d", {{"start", bounds[0]}, {"end", bounds[1]}, {"step", bounds[2]}}));
}

constexpr NodeRow kShapeRows[] = {
    NodeRow("ConstantOfShape", ConstantOfShape, 9).Folded(),
    {"Expand", Expand, 8},
    NodeRow("Flatten", Flatten).Direct(),
    NodeRow("Range", Range, 11).Direct(),
    NodeRow("Reshape", ReshapeAttribute, 1, 4).Direct(),
    NodeRow("Reshape", Reshape, 5).Direct(),
    NodeRow("Shape", ShapeRange).Direct(),
    NodeRow("Size", Size).Folded(),
    NodeRow("Squeeze", Squeeze).Direct(),
    NodeRow("Tile", TileAxis, 1, 5).Direct(),
    NodeRow("Tile", Tile, 6).Direct(),
    NodeRow("Transpose", Transpose).Direct(),
    NodeRow("Unsqueeze", Unsqueeze).Direct(),
};

}  // namespace

std::span<const NodeRow> ShapeRows() { return kShapeRows; }

}  // namespace mlc::onnx
