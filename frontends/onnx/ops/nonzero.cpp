// NonZero, Compress and Unique, whose results have a size that depends on the data.
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/lower/sort.h"

namespace mlc::onnx {

namespace {

// Selects the slices along an axis, or the elements, for which the condition is true.
void Compress(Node& node) {
  Value *x = node.In(0), *condition = node.In(1);
  if (node.rank(1) != 1) node.Fail("bad-operand", "the condition must be a vector");
  int64_t axis = 0;
  if (node.Has("axis"))
    axis = node.Axis(node.Int("axis"), node.rank());
  else
    x = AsVector(node, x);
  if (!condition->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  Value* places = Places(node, condition);
  Value* indices = Squeezed(node, places, {1});
  node.SetAlike(node.Make("gather", {{"x", x}, {"indices", indices}, {"axis", axis}}));
}

// MIL's result has one row per nonzero element, ONNX's has one column; a scalar is treated as a
// vector.
void NonZero(Node& node) {
  Value* x = node.rank() ? node.In(0) : AsVector(node, node.In(0));
  Value* places = Places(node, x);
  node.Set(Transposed(node, places, {1, 0}), DType::kInt64);
}

// The distinct slices of a tensor along an axis, or its distinct elements.
void Unique(Node& node) {
  std::optional<int> axis;
  if (node.Has("axis")) axis = node.Axis(node.Int("axis"), node.rank());
  lower::Distinct distinct =
      lower::DistinctSlices(node, node.In(0), axis, node.Int("sorted", 1) != 0);
  node.Set(0, distinct.values, node.dtype());
  node.Set(1, distinct.first, DType::kInt64);
  node.Set(2, distinct.inverse, DType::kInt64);
  node.Set(3, distinct.counts, DType::kInt64);
}

constexpr NodeRow kNonZeroRows[] = {
    NodeRow("Compress", Compress, 9).When("the condition is constant"),
    NodeRow("NonZero", NonZero, 9).When("the input is constant"),
    NodeRow("Unique", Unique, 11)
        .When("at run time: constant sizes, and all pairwise comparisons fit into memory"),
};

}  // namespace

std::span<const NodeRow> NonZeroRows() { return kNonZeroRows; }

}  // namespace mlc::onnx
