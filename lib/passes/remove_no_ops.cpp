// Removes operations whose result equals their operand.
//
//   y = mul(x, 1); z = relu(y)   ->   z = relu(x)
//
// identity; cast to the same type; reshape, expand_dims or squeeze to the same shape; transpose in
// order; add or sub 0, mul or div or pow 1; a slice of everything; pad by nothing; tile once;
// concat of one. Must not fire where types differ (broadcasting), where the result is a model
// output and the operand an input or a constant. Numeric effect: none (x + 0 turns -0 into 0, which
// no consumer but a division by it sees).
//
// Operators by name: what it matches and what it makes.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool AllEqual(const Tensor& tensor, double number) {
  if (!tensor) return false;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.Double(i) != number) return false;
  return true;
}

// The operand that the result equals, if the types agree too.
Value* Equal(const Operation& op) {
  std::string_view name = op.def->name;
  auto uniform = [&](std::string_view param, double number) {
    return IsUniform(op.value(param), number);
  };
  if (name == "identity" || name == "cast" || name == "reshape" || name == "expand_dims" ||
      name == "squeeze")
    return op.value("x");
  if (name == "transpose") {
    Tensor perm = op.constant("perm");
    if (!perm) return nullptr;
    for (int64_t i = 0; i < perm.size(); ++i)
      if ((perm.Int(i) + perm.size()) % perm.size() != i) return nullptr;
    return op.value("x");
  }
  if (name == "add")
    return uniform("y", 0) ? op.value("x") : uniform("x", 0) ? op.value("y") : nullptr;
  if (name == "mul")
    return uniform("y", 1) ? op.value("x") : uniform("x", 1) ? op.value("y") : nullptr;
  if (name == "sub") return uniform("y", 0) ? op.value("x") : nullptr;
  if (name == "real_div" || name == "pow") return uniform("y", 1) ? op.value("x") : nullptr;
  if (name == "pad") return AllEqual(op.constant("pad"), 0) ? op.value("x") : nullptr;
  if (name == "tile") return AllEqual(op.constant("reps"), 1) ? op.value("x") : nullptr;
  if (name == "concat") return op.arg("values").size() == 1 ? op.value("values") : nullptr;
  if (name == "slice_by_index") {
    // The same shape as x, read forward: everything, since no dimension lost an element.
    Tensor stride = op.constant("stride"), squeeze = op.constant("squeeze_mask");
    if (op.has("stride") && !AllEqual(stride, 1)) return nullptr;
    if (op.has("squeeze_mask") && !AllEqual(squeeze, 0)) return nullptr;
    return op.value("x");
  }
  if (name == "slice_by_size") return op.value("x");
  return nullptr;
}

bool Run(Program& program, PassContext&) {
  return RewriteAll(program, [](Operation* op) {
    if (op->results.size() != 1) return false;
    Value* operand = Equal(*op);
    if (!operand || !(operand->type == op->result()->type) || !CanReplace(op->result(), operand))
      return false;
    Replace(op, operand);
    return true;
  });
}

}  // namespace

extern const PassDef kRemoveNoOps = {"remove-no-ops",
                                     "remove operations whose result equals their operand", Run};

}  // namespace mlc
