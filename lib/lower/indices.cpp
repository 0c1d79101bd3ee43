#include "lib/lower/indices.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/ops/value_range.h"

namespace mlc::lower {

namespace {

// Adds `sizes` to negative indices, as coremltools does.
Value* Raise(Builder& b, Value* indices, Value* sizes) {
  if (IsNatural(indices)) return indices;
  if (sizes->is_constant()) sizes = b.Cast(sizes, indices->type.dtype);
  Value* raised = Binary(b, "add", indices, sizes);
  return Select(b, Binary(b, "less", indices, 0), raised, indices);
}

}  // namespace

Value* CountingFromEnd(Value* result) {
  Operation* op = result->def;
  // Its result may be cast.
  while (op && op->def->Find("validate_indices") < 0)
    op = op->def->Find("x") >= 0 && op->value("x") ? op->value("x")->def : nullptr;
  if (!op) return result;
  for (const Form& form : op->def->forms)
    if (form.Find("validate_indices") < 0) op->form = &form;
  return result;
}

Value* FromFront(Builder& b, Value* indices, Value* x, int axis) {
  Sizes size(b);
  size.AddDim(x, axis);
  if (size.known()) return Raise(b, indices, b.Const(Tensor::Scalar(size.numbers()[0])));
  if (IsNatural(indices)) return indices;
  return Raise(b, indices, Squeezed(b, size.Make(), {0}));
}

Value* VectorsFromFront(Builder& b, Value* indices, Value* x, int batch) {
  const Shape& shape = indices->type.shape;
  if (shape.empty() || !shape.back().is_constant())
    throw Error("bad-operand",
                "the length of the index vectors is unknown: the indices have the shape {}",
                ToString(shape));
  int64_t depth = shape.back().constant();
  if (depth < 1 || depth > x->type.rank() - batch)
    throw Error("bad-operand", "index vectors of length {} do not match the shape {}", depth,
                ToString(x->type.shape));
  if (IsNatural(indices)) return indices;
  Sizes sizes(b);
  for (int i = 0; i < depth; ++i) sizes.AddDim(x, batch + i);
  return Raise(b, indices, sizes.Make());
}

}  // namespace mlc::lower
