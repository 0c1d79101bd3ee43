// Merges chains of reshape, expand_dims, squeeze and flatten2d into the last shape.
//
//   b = reshape(a, [2, 12]); c = expand_dims(b, [0])   ->   c = reshape(a, [1, 2, 12])
//   b = expand_dims(a, [1]); c = squeeze(b, [1])       ->   c = a
//
// A symbolic last shape merges where it is the first's operand again, or where it is written in
// constants (a -1 among them) that take nothing from the operand's dimensions. Must not fire where
// the last result is a scalar, which reshape cannot make on every target, or has more than five
// dimensions. No numeric effect.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool IsReshape(const Operation* op) {
  return op &&
         (op->is("reshape") || op->is("expand_dims") || op->is("squeeze") || op->is("flatten2d"));
}

// The constant shape operand that makes `op`'s result out of anything with as many elements.
Tensor FreeShape(const Operation& op) {
  const Shape& shape = op.result()->type.shape;
  if (shape.empty() || shape.size() > 5) return {};
  if (IsStatic(shape)) return Ints(StaticDims(shape));
  if (!op.is("reshape")) return {};
  Tensor target = op.constant("shape");
  if (!target) return {};
  for (int64_t dim : target.Ints())
    if (dim == 0) return {};
  return target;
}

bool Merge(Operation* second, PassContext& context) {
  if (!IsReshape(second)) return false;
  Value* middle = second->value("x");
  if (!middle || !IsReshape(middle->def)) return false;
  Value* source = middle->def->value("x");
  if (!source) return false;
  if (source->type == second->result()->type && CanReplace(second->result(), source)) {
    Replace(second, source);
    return true;
  }
  Tensor shape = FreeShape(*second);
  if (!shape) return false;
  Replace(second,
          BuilderBefore(second, context).Make("reshape", {{"x", source}, {"shape", shape}}));
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Merge(op, context); });
}

}  // namespace

const PassDef kCancelReshapes = {"cancel-reshapes",
                                 "merge chains of reshape, expand_dims and squeeze", Run};

}  // namespace mlc
