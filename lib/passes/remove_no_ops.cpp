// Removes operations whose result equals their operand.
//
//   y = mul(x, 1); z = relu(y)   ->   z = relu(x)
//
// These are: identity; cast to the same type; reshape, expand_dims or squeeze to the same shape;
// transpose with the identity permutation; add or sub 0, mul or div or pow 1; a slice of all
// elements; pad by 0; tile by 1; concat of one operand. Must not fire if types differ
// (broadcasting), or if the result is a model output and the operand an input or a constant.
// Numeric effect: none, except that x + 0 turns -0 into 0, which matters only for a division by it.
//
// Operators by name: the operations without effect that it matches.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool AllEqual(const Tensor& tensor, double number) {
  constexpr int64_t kLooked = 65536;
  if (!tensor || tensor.size() > kLooked || tensor.dtype() == DType::kString) return false;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.Double(i) != number) return false;
  return true;
}

// Returns the operand that the result equals if their types agree.
Value* Equal(const Operation& op) {
  if (Reshapes(op) || IsCast(op) || op.is("identity") || op.is("slice_by_size"))
    return op.value("x");
  for (const Neutral& neutral : op.def->neutral)
    if (!neutral.param.empty() && AllEqual(op.constant(neutral.param), neutral.number))
      return op.value(neutral.result);
  if (op.is("transpose")) {
    Tensor perm = op.constant("perm");
    if (!perm) return nullptr;
    for (int64_t i = 0; i < perm.size(); ++i)
      if ((perm.Int(i) + perm.size()) % perm.size() != i) return nullptr;
    return op.value("x");
  }
  if (op.is("concat")) return op.arg("values").size() == 1 ? op.value("values") : nullptr;
  if (op.is("slice_by_index")) {
    // The shape equals that of x, so a slice with stride 1 contains all elements.
    Tensor stride = op.constant("stride"), squeeze = op.constant("squeeze_mask");
    if (op.has("stride") && !AllEqual(stride, 1)) return nullptr;
    if (op.has("squeeze_mask") && !AllEqual(squeeze, 0)) return nullptr;
    return op.value("x");
  }
  return nullptr;
}

bool RunRemoveNoOps(Program& program, PassContext&) {
  return RewriteAll(program, [](Operation* op) {
    if (op->results.size() != 1) return false;
    Value* operand = Equal(*op);
    if (!operand || !(operand->type == op->result()->type) || !CanReplace(op->result(), operand))
      return false;
    return Replace(op, operand);
  });
}

}  // namespace

extern const PassDef kRemoveNoOps = {
    "remove-no-ops", "remove operations whose result equals their operand", RunRemoveNoOps};

}  // namespace mlc::passes
