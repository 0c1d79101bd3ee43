// Merges chains of reshape, expand_dims, squeeze and their like into the last shape.
//
//   b = reshape(a, [2, 12]); c = expand_dims(b, [0])   ->   c = reshape(a, [1, 2, 12])
//   b = expand_dims(a, [1]); c = squeeze(b, [1])       ->   c = a
//
// Must not fire where more than one dimension of the last shape is unknown (unless it is the first
// operand's shape again), where it is a scalar, which reshape cannot make on every target, or has
// more than five dimensions. No numeric effect.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool Merge(Operation* second, PassContext& context) {
  if (!Reshapes(*second)) return false;
  const Operation* first = second->value("x")->def;
  if (!first || !Reshapes(*first)) return false;
  Value* source = first->value("x");
  if (source->type == second->result()->type && CanReplace(second->result(), source)) {
    Replace(second, source);
    return true;
  }
  const Shape& last = second->result()->type.shape;
  Tensor shape = ShapeOperand(last);
  if (!shape || last.size() > 5) return false;
  Replace(second,
          BuilderBefore(second, context).Make("reshape", {{"x", source}, {"shape", shape}}));
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Merge(op, context); });
}

}  // namespace

extern const PassDef kCancelReshapes = {"cancel-reshapes",
                                        "merge chains of reshape, expand_dims and squeeze", Run};

}  // namespace mlc
