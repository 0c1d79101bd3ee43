#include "frontends/onnx/indices.h"

#include "frontends/onnx/sizes.h"

namespace mlc::onnx {

namespace {

// Indices plus `sizes` from -sizes to -1. What is below stays so, for the run time to refuse: plus
// a size it might be an index from the end.
Value* Raise(Node& node, Value* indices, Value* sizes) {
  if (IsNatural(indices)) return indices;
  if (sizes->is_constant()) sizes = node.builder().Cast(sizes, indices->type.dtype);
  Value* raised = node.Make("add", {{"x", indices}, {"y", sizes}});
  Value* turn = node.Make("floor_div", {{"x", indices}, {"y", sizes}});
  Value* negative = node.Make("equal", {{"x", turn}, {"y", -1}});
  return node.Make("select", {{"cond", negative}, {"a", raised}, {"b", indices}});
}

}  // namespace

Value* FromFront(Node& node, Value* indices, Value* x, int axis) {
  Sizes size(node);
  size.AddDim(x, axis);
  if (size.known()) return Raise(node, indices, node.Const(Tensor::Scalar(size.numbers()[0])));
  if (IsNatural(indices)) return indices;
  return Raise(node, indices, node.Make("squeeze", {{"x", size.Make()}, {"axes", Ints({0})}}));
}

Value* VectorsFromFront(Node& node, Value* indices, Value* x, int batch) {
  const Shape& shape = indices->type.shape;
  if (shape.empty() || !shape.back().is_constant())
    node.Fail("bad-operand",
              fmt::format("the length of index vectors in {} is not known", ToString(shape)));
  int64_t depth = shape.back().constant();
  if (depth < 1 || depth > x->type.rank() - batch)
    node.Fail("bad-operand",
              fmt::format("index vectors of {} for {}", depth, ToString(x->type.shape)));
  if (IsNatural(indices)) return indices;
  Sizes sizes(node);
  for (int i = 0; i < depth; ++i) sizes.AddDim(x, batch + i);
  return Raise(node, indices, sizes.Make());
}

}  // namespace mlc::onnx
