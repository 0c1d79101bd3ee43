// Writes infinities and NaNs as divisions by zero, so that a package contains finite numbers only:
// converters and checkers take infinite constants for the result of an overflow during conversion.
//
//   m = const([0, -inf]); y = add(x, m)   ->   m = real_div([0, -1], [1, 0]); y = add(x, m)
//
// Such a division is never folded. NaNs, and infinities in constants without an elementwise user,
// cause a warning. Must not fire on operands that must be constant, or on constants with more than
// 64 Ki elements (4 Mi with an elementwise user), which are weights. No numeric effect.
#include <cmath>
#include <set>

#include "lib/ir/tensor_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// The size limits for possible masks and for other constants; weights are neither read nor loaded
// into memory.
constexpr int64_t kMostElements = int64_t{1} << 22, kMostElsewhere = int64_t{1} << 16;

// Returns the indices of the parameters of `user` that take the constant; none if one of them must
// be constant.
std::vector<int> Replaceable(const Operation& user, const Value* constant) {
  std::vector<int> found;
  const std::vector<Param>& params = user.def->canonical().params;
  for (size_t i = 0; i < params.size(); ++i)
    for (const Operand& operand : user.args()[i])
      if (operand.value == constant) {
        if (params[i].is_const) return {};
        found.push_back(static_cast<int>(i));
        break;
      }
  return found;
}

bool Rewrite(Operation* op, PassContext& context) {
  if (!op->def->is_const() || !op->val || !IsFloat(op->val.dtype()) ||
      op->val.size() > kMostElements)
    return false;
  Value* constant = op->result();
  std::set<std::pair<Operation*, int>> uses;
  bool mask = false, all = true;
  for (Operation* user : constant->users) {
    mask = mask || user->def->elementwise();
    std::vector<int> replaceable = Replaceable(*user, constant);
    for (int i : replaceable) uses.emplace(user, i);
    all = all && !replaceable.empty();
  }
  bool output = all && constant->is_output();
  if ((uses.empty() && !output) || (!mask && op->val.size() > kMostElsewhere)) return false;
  std::vector<double> dividend = op->val.Doubles(), divisor(dividend.size(), 1);
  bool finite = true, nan = false;
  for (size_t i = 0; i < dividend.size(); ++i) {
    if (std::isfinite(dividend[i])) continue;
    finite = false;
    nan = nan || std::isnan(dividend[i]);
    dividend[i] = std::isnan(dividend[i]) ? 0 : std::copysign(1, dividend[i]);
    divisor[i] = 0;
  }
  if (finite) return false;
  // Infinities are expected in masks, and NaN in a comparison; in weights both are errors.
  const bool weight = !mask && !constant->users.empty();
  if (weight || (nan && dividend.size() > 1)) context.diagnostics.Warn(NotFinite(constant->name));
  const Dims& dims = op->val.dims();
  DType dtype = op->val.dtype();
  Builder builder(*op->block, context.diagnostics, op->block->Next(op));
  builder.SetName(constant->name);
  builder.SetLocation(op->location);
  Value* quotient =
      builder.Make("real_div", {{"x", Tensor::Of<double>(dims, dividend).Cast(dtype)},
                                {"y", Tensor::Of<double>(dims, divisor).Cast(dtype)}});
  for (auto [user, i] : uses) {
    Operands operands = user->args()[i];
    for (Operand& operand : operands)
      if (operand.value == constant) operand = quotient;
    user->SetArg(i, std::move(operands));
  }
  std::string name = constant->name;
  if (output) ReplaceAllUses(constant, quotient);
  if (constant->has_uses()) return true;
  op->block->Erase(op);
  quotient->def->block->function->Rename(quotient, name);
  return true;
}

}  // namespace

extern const PassDef kFiniteConstants = {
    "finite-constants", "write infinite and NaN constants as divisions by zero", Rewrites<Rewrite>};

}  // namespace mlc::passes
