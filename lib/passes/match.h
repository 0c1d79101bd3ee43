// lib/passes/match.h - small questions that rewrites ask about values and operations.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/passes/passes.h"

namespace mlc {

// The operation `name` that defines `value`, or null.
inline Operation* DefinedBy(Value* value, std::string_view name) {
  return value && value->def && value->def->is(name) ? value->def : nullptr;
}

// The only operand use of a value that is no output; null otherwise.
inline Operation* SoleUser(const Value* value) {
  return value->output_uses == 0 && value->users.size() == 1 ? value->users[0] : nullptr;
}
inline Operation* SoleUser(const Value* value, std::string_view name) {
  Operation* user = SoleUser(value);
  return user && user->is(name) ? user : nullptr;
}

// The number that every element of a constant float or integer value is; nothing for other values.
// Looks at 64 Ki elements at most.
inline std::optional<double> UniformConstant(const Value* value) {
  if (!value || !value->is_constant()) return std::nullopt;
  const Tensor& tensor = value->constant();
  if (tensor.dtype() == DType::kString || tensor.size() == 0 || tensor.size() > 65536)
    return std::nullopt;
  double first = tensor.Double(0);
  for (int64_t i = 1; i < tensor.size(); ++i)
    if (tensor.Double(i) != first) return std::nullopt;
  return first;
}
inline bool IsUniform(const Value* value, double number, double tolerance = 0) {
  std::optional<double> uniform = UniformConstant(value);
  return uniform && std::fabs(*uniform - number) <= tolerance * std::fabs(number);
}

// For a commutative binary operation: the operand that is not `value`; null when `value` is no
// operand.
inline Value* OtherOperand(const Operation* op, const Value* value) {
  if (op->value("x") == value) return op->value("y");
  return op->value("y") == value ? op->value("x") : nullptr;
}
// {constant operand, run-time operand} of a binary operation; nulls when both or neither are
// constant.
inline std::pair<Value*, Value*> SplitConstant(const Operation* op) {
  Value *x = op->value("x"), *y = op->value("y");
  if (!x || !y || x->is_constant() == y->is_constant()) return {nullptr, nullptr};
  return x->is_constant() ? std::pair{x, y} : std::pair{y, x};
}

// Whether `from` may stand wherever `to` is used, also as an output: an output must not become an
// input, a constant or a value that is an output already.
inline bool CanReplace(const Value* to, const Value* from) {
  if (to->output_uses == 0) return true;
  return from->def && !from->is_constant() && from->output_uses == 0 &&
         from->def->block == to->def->block;
}

// A builder in front of `op` that names and locates what it makes after it.
inline Builder BuilderBefore(Operation* op, PassContext& context) {
  Builder builder(*op->block, context.diagnostics, op);
  builder.SetName(op->results.empty() ? op->name : op->result()->name);
  builder.SetLocation(op->location);
  return builder;
}

// Runs `rewrite` on every operation, nested blocks included, until a whole round changes nothing.
// `rewrite` may erase only the operation that it is given; what becomes unused is dead-code's
// business.
inline bool RewriteAll(Program& program, const std::function<bool(Operation*)>& rewrite) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (std::unique_ptr<Function>& function : program.functions)
      ForEachOperation(*function, [&](Operation* op) { again |= rewrite(op); });
    changed |= again;
  }
  return changed;
}

}  // namespace mlc
