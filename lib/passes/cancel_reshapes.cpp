// Merges chains of operations that only change the shape (reshape, expand_dims, squeeze, ...) into
// one operation.
//
//   b = reshape(a, [2, 12]); c = expand_dims(b, [0])   ->   c = reshape(a, [1, 2, 12])
//   b = expand_dims(a, [1]); c = squeeze(b, [1])       ->   c = a
//
// Must not fire if the final shape has more than one dynamic dimension (unless it equals the shape
// of a), is a scalar, which reshape does not support on every target, or has more than five
// dimensions. No numeric effect.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool Merge(Operation* second, PassContext& context) {
  if (!Reshapes(*second)) return false;
  const Operation* first = second->value("x")->def;
  if (!first || !Reshapes(*first)) return false;
  Value* source = first->value("x");
  if (source->type == second->result()->type && CanReplace(second->result(), source)) {
    return Replace(second, source);
  }
  const Shape& last = second->result()->type.shape;
  Tensor shape = ShapeOperand(last);
  if (!shape || last.size() > 5) return false;
  return ReplaceBy(second, context, "reshape", {{"x", source}, {"shape", shape}});
}

}  // namespace

extern const PassDef kCancelReshapes = {
    "cancel-reshapes", "merge chains of reshape, expand_dims and squeeze", Rewrites<Merge>};

}  // namespace mlc::passes
