// Merges chains of reshape, expand_dims, squeeze and flatten2d into the last shape.
//
//   b = reshape(a, [2, 12]); c = expand_dims(b, [0])   ->   c = reshape(a, [1, 2, 12])
//
// Must not fire where the first result is used elsewhere and the last operation would be no
// cheaper, nor where the last shape is not static (its reshape operand may depend on the first's
// shape). No numeric effect.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool IsReshape(const Operation* op) {
  return op &&
         (op->is("reshape") || op->is("expand_dims") || op->is("squeeze") || op->is("flatten2d"));
}

bool Merge(Operation* second, PassContext& context) {
  if (!IsReshape(second) || !IsStatic(second->result()->type.shape) ||
      second->result()->type.rank() > 5)
    return false;
  Value* middle = second->value("x");
  if (!middle || !IsReshape(middle->def)) return false;
  Operation* first = middle->def;
  Value* source = first->value("x");
  if (!source || source->type.dtype != second->result()->type.dtype) return false;
  if (source->type == second->result()->type && CanReplace(second->result(), source)) {
    ReplaceAllUses(second->result(), source);
  } else {
    std::vector<int64_t> shape = StaticDims(second->result()->type.shape);
    if (shape.empty()) return false;  // reshape cannot make a scalar on every target; squeeze can
    ReplaceAllUses(
        second->result(),
        BuilderBefore(second, context).Make("reshape", {{"x", source}, {"shape", Ints(shape)}}));
  }
  second->block->Erase(second);
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Merge(op, context); });
}

}  // namespace

const PassDef kCancelReshapes = {"cancel-reshapes",
                                 "merge chains of reshape, expand_dims and squeeze", Run};

}  // namespace mlc
