// Merges chains of transposes; those that undo each other vanish.
//
//   b = transpose(a, [0, 2, 3, 1]); c = transpose(b, [0, 3, 1, 2])   ->   c = a
//
// Must not fire where the first transpose's result is a model output as well and the chain does not
// get shorter. No numeric effect.
#include "lib/passes/match.h"

namespace mlc {
namespace {

std::vector<int64_t> Perm(const Operation& transpose) {
  Tensor tensor = transpose.constant("perm");
  std::vector<int64_t> perm = tensor.Ints();
  for (int64_t& axis : perm)
    if (axis < 0) axis += static_cast<int64_t>(perm.size());
  return perm;
}

bool IsIdentity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool Merge(Operation* second, PassContext& context) {
  if (!second->is("transpose") || !second->constant("perm")) return false;
  Operation* first = DefinedBy(second->value("x"), "transpose");
  if (!first || !first->constant("perm")) return false;
  std::vector<int64_t> inner = Perm(*first), outer = Perm(*second), perm(outer.size());
  for (size_t i = 0; i < outer.size(); ++i) perm[i] = inner[outer[i]];
  Value* source = first->value("x");
  if (IsIdentity(perm)) {
    if (!CanReplace(second->result(), source)) return false;
    ReplaceAllUses(second->result(), source);
  } else {
    ReplaceAllUses(
        second->result(),
        BuilderBefore(second, context).Make("transpose", {{"x", source}, {"perm", Ints(perm)}}));
  }
  second->block->Erase(second);
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Merge(op, context); });
}

}  // namespace

const PassDef kCancelTransposes = {
    "cancel-transposes", "merge chains of transposes and remove those that undo each other", Run};

}  // namespace mlc
