// Trilu and EyeLike.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// Column minus row for each element of the matrices in the last two dimensions of x.
Value* Offsets(Node& node, Value* x) {
  int rank = x->type.rank();
  auto places = [&](int axis, int64_t behind) {
    Sizes size(node);
    size.AddDim(x, axis);
    Value* end = Squeezed(node, size.Make(), {0});
    Value* range = Counting(node, lower::AtRunTime(node, end, DType::kInt32));
    return Expanded(node, range, {behind});
  };
  return node.Make("sub", {{"x", places(rank - 1, 0)}, {"y", places(rank - 2, 1)}});
}

// Where column minus row lies in [low, high] (nothing: unbounded), as a bool value that broadcasts
// to x.
Value* Band(Node& node, Value* x, std::optional<int64_t> low, std::optional<int64_t> high) {
  int rank = x->type.rank();
  const Dim &rows = x->type.shape[rank - 2], &columns = x->type.shape[rank - 1];
  auto inside = [&](int64_t offset) {
    return (!low || offset >= *low) && (!high || offset <= *high);
  };
  constexpr int64_t kLargestMask = int64_t{1} << 24;
  if (rows.is_constant() && columns.is_constant() &&
      rows.constant() * columns.constant() <= kLargestMask) {
    Dims dims = {rows.constant(), columns.constant()};
    std::vector<bool> mask;
    for (int64_t r = 0; r < dims[0]; ++r)
      for (int64_t c = 0; c < dims[1]; ++c) mask.push_back(inside(c - r));
    return node.Const(Tensor::Of<bool>(dims, mask));
  }
  Value* offset = Offsets(node, x);
  Value* mask = nullptr;
  if (low) mask = Binary(node, "greater_equal", offset, *low);
  if (high) {
    Value* below = Binary(node, "less_equal", offset, *high);
    mask = mask ? Binary(node, "logical_and", mask, below) : below;
  }
  return mask;
}

// MIL's band_part always keeps the main diagonal; other triangles are selected with a mask.
void Trilu(Node& node) {
  Value* x = node.In(0);
  if (node.rank() < 2)
    node.Fail("bad-operand", "the input is {}, expected at least two dimensions",
              ToString(node.shape()));
  node.RequireRunTimeType(node.dtype(), "elements");
  bool upper = node.Int("upper", 1) != 0;
  if (node.HasInput(1) && !node.In(1)->is_constant()) {
    Value* mask = node.Make(upper ? "greater_equal" : "less_equal",
                            {{"x", Offsets(node, x)}, {"y", AsVector(node, node.In(1))}});
    Value* zero = node.Const(Tensor::Full(lower::RuntimeType(node.dtype()), {}, 0));
    x = lower::AtRunTime(node, x, node.dtype());
    return node.SetAlike(Select(node, mask, x, zero));
  }
  int64_t k = 0;
  if (node.HasInput(1)) {
    std::vector<int64_t> values = node.ConstantInts(1, "k");
    if (values.size() != 1) node.Fail("bad-operand", "k must be a single number");
    k = values[0];
  }
  constexpr int64_t kFar = int64_t{1} << 30;
  k = std::clamp(k, -kFar, kFar);
  DType dtype = node.dtype();
  if (upper ? k <= 0 : k >= 0)
    return node.Set(node.Make("band_part", {{"x", x},
                                            {"lower", upper ? -k : int64_t{-1}},
                                            {"upper", upper ? int64_t{-1} : k}}),
                    dtype);
  Value* mask = upper ? Band(node, x, k, std::nullopt) : Band(node, x, std::nullopt, k);
  Value* zero = node.Const(Tensor::Full(x->type.dtype, {}, 0));
  node.Set(Select(node, mask, x, zero), dtype);
}

void EyeLike(Node& node) {
  if (node.rank() != 2)
    node.Fail("bad-operand", "the input is {}, expected a matrix", ToString(node.shape()));
  int64_t k = node.Int("k", 0);
  DType dtype = node.Has("dtype") ? ToDType(static_cast<int>(node.Int("dtype"))) : node.dtype();
  node.RequireRunTimeType(dtype, "results");
  node.Set(lower::Convert(node, Band(node, node.In(0), k, k), DType::kBool, dtype), dtype);
}

constexpr NodeRow kTriangleRows[] = {
    NodeRow("EyeLike", EyeLike, 9).Folded(),
    {"Trilu", Trilu, 14},
};

}  // namespace

std::span<const NodeRow> TriangleRows() { return kTriangleRows; }

}  // namespace mlc::onnx
