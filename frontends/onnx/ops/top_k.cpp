// TopK, ArgMax and ArgMin.
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/lower/sort.h"

namespace mlc::onnx {

namespace {

// Handles K computed at run time: takes the first K entries of the fully sorted order.
void TopOpenK(Node& node, int axis, bool largest) {
  Value* k = AsVector(node, node.In(1));
  std::optional<Dim> known = ElementOf(k, 0);
  const Dim size = node.shape()[axis];
  bool fits = known && RequireSize(node, *known, 0, INT32_MAX, "K must not be negative") &&
              RequireSize(node, size - *known, 0, INT32_MAX,
                          fmt::format("K must be at most {}", size.ToString()));
  if (!fits) {
    Sizes most(node);
    most.AddDim(node.In(0), axis);
    Value* high = lower::AtRunTime(node, most.Make(), DType::kInt64);
    k = Within(node, k, node.Const(Tensor::Scalar<int32_t>(0)), high);
  }
  Value* places = lower::FirstOfOrder(node, node.In(0), axis, k, largest);
  // Requires K to be at most the number of entries, and uses a tighter bound if K has one.
  const Dim count = places->type.shape[axis];
  Bounded(node, count, size);
  if (known) Bounded(node, count, *known);
  node.Set(0,
           node.Make("gather_along_axis", {{"x", node.In(0)}, {"indices", places}, {"axis", axis}}),
           node.dtype());
  node.Set(1, places, DType::kInt64);
}

void TopK(Node& node) {
  int axis = node.Axis(node.Int("axis", -1), node.rank());
  bool largest = node.opset() < 11 || node.Int("largest", 1) != 0;
  node.Ignore({"sorted"});  // sorting is allowed where no order is required
  int64_t k;
  if (node.opset() < 10) {
    k = node.Int("k");
  } else {
    if (Product(node.shape(1)) != Dim(1)) node.Fail("bad-operand", "K must be a single number");
    std::optional<std::vector<Dim>> known = node.Elements(1);
    if (!known || !known->front().is_constant()) return TopOpenK(node, axis, largest);
    k = known->front().constant();
  }
  if (k < 1) node.Fail("bad-operand", "K is {}, expected a positive number", k);
  const Dim& size = node.shape()[axis];
  RequireSize(
      node, size, k, INT32_MAX,
      fmt::format("K is {} and must not exceed the number of elements, {}", k, size.ToString()));
  std::vector<Value*> results = node.builder().MakeAll(
      "topk", {{"x", node.In(0)}, {"k", k}, {"axis", axis}, {"ascending", !largest}});
  node.Set(0, results[0], node.dtype());
  node.Set(1, results[1], DType::kInt64);
}

// Returns the index of the first of equal elements. With select_last_index it returns the last, by
// searching the reversed tensor.
void Arg(Node& node, std::string_view op) {
  int axis = node.Axis(node.Int("axis", 0), node.rank());
  bool keep = node.Int("keepdims", 1) != 0;
  bool last = node.opset() >= 12 && node.Int("select_last_index", 0) != 0;
  Value* x = node.In(0);
  if (last) x = node.Make("reverse", {{"x", x}, {"axes", Ints({axis})}});
  Value* index = node.Make(op, {{"x", x}, {"axis", axis}, {"keep_dims", keep}});
  if (last) {
    Sizes size(node);
    size.AddDim(x, axis);
    Value* count = Squeezed(node, size.Make(), {0});
    if (count->is_constant()) count = node.builder().Cast(count, index->type.dtype);
    Value* end = Binary(node, "sub", count, 1);
    index = Binary(node, "sub", end, index);
  }
  node.Set(index, DType::kInt64);
}
void ArgMax(Node& node) { Arg(node, "reduce_argmax"); }
void ArgMin(Node& node) { Arg(node, "reduce_argmin"); }

constexpr NodeRow kTopKRows[] = {
    NodeRow("ArgMax", ArgMax).Direct(),
    NodeRow("ArgMin", ArgMin).Direct(),
    NodeRow("TopK", TopK).Direct(),
};

}  // namespace

std::span<const NodeRow> TopKRows() { return kTopKRows; }

}  // namespace mlc::onnx
