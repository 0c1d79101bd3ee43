// Merges chains of transposes and removes transposes that cancel.
//
//   b = transpose(a, [0, 2, 3, 1]); c = transpose(b, [0, 3, 1, 2])   ->   c = a
//
//   b = transpose(a: [1, 8, 1, 1], [0, 2, 3, 1]); c = reshape(b, [1, 8])
//     ->   c = reshape(a, [1, 8])
//
// Must not fire if a permutation is not constant. Next to a reshape, it must not fire if the
// transpose changes the order of dimensions other than 1. No numeric effect.
//
// Operators by name: the transposes and reshapes that it matches and creates.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool IsIdentity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool MergeTransposes(Operation* second, PassContext& context) {
  if (!second->is("transpose")) return false;
  Operation* first = DefinedBy(second->value("x"), "transpose");
  int rank = second->result()->type.rank();
  auto outer = ConstantAxes(*second, "perm", rank);
  if (!first || !outer) return false;
  auto inner = ConstantAxes(*first, "perm", rank);
  Value* source = first->value("x");
  if (!inner || !source) return false;
  std::vector<int64_t> perm;
  for (int64_t axis : *outer) perm.push_back((*inner)[axis]);
  if (IsIdentity(perm)) {
    if (!CanReplace(second->result(), source)) return false;
    Replace(second, source);
  } else {
    Replace(
        second,
        BuilderBefore(second, context).Make("transpose", {{"x", source}, {"perm", Ints(perm)}}));
  }
  return true;
}

// Next to a reshape, replaces a transpose that moves only dimensions of size 1 by a reshape.
bool AsReshape(Operation* transpose, PassContext& context) {
  if (!transpose->is("transpose")) return false;
  Value *x = transpose->value("x"), *result = transpose->result();
  auto perm = ConstantAxes(*transpose, "perm", result->type.rank());
  Tensor shape = ShapeOperand(result->type.shape);
  if (!x || !perm || !shape || result->type.rank() > 5) return false;
  auto reshapes = [](const Operation* op) { return op && Reshapes(*op); };
  bool beside =
      reshapes(x->def) || (!result->is_output() && !result->users.empty() &&
                           std::all_of(result->users.begin(), result->users.end(), reshapes));
  if (!beside) return false;
  int64_t last = -1;
  for (int64_t axis : *perm) {
    if (x->type.shape[axis] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return ReplaceBy(transpose, context, "reshape", {{"x", x}, {"shape", shape}});
}

}  // namespace

extern const PassDef kCancelTransposes = {"cancel-transposes",
                                          "merge chains of transposes and remove those that cancel",
                                          Rewrites<MergeTransposes, AsReshape>};

}  // namespace mlc::passes
