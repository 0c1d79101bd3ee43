// lib/passes/match.h - small questions that rewrites ask about values and operations, and the one
// way in which they replace an operation.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/passes/pass.h"

namespace mlc {

// An operation that is of the types around it.
inline bool IsCast(const Operation& op) { return op.is("cast"); }

// The operation `name` that defines `value`, or null.
inline Operation* DefinedBy(const Value* value, std::string_view name) {
  return value && value->def && value->def->is(name) ? value->def : nullptr;
}

// The only operand use of a value that is no output, in the value's own block; null otherwise.
inline Operation* SoleUser(const Value* value) {
  if (value->is_output() || value->users.size() != 1) return nullptr;
  Operation* user = value->users.front();
  return value->def && value->def->block != user->block ? nullptr : user;
}
inline Operation* SoleUser(const Value* value, std::string_view name) {
  Operation* user = SoleUser(value);
  return user && user->is(name) ? user : nullptr;
}

// The number that every element of a constant float or integer is; nothing for other tensors.
// Looks at 64 Ki elements at most.
std::optional<double> Uniform(const Tensor& tensor);
inline std::optional<double> UniformConstant(const Value* value) {
  return value && value->is_constant() ? Uniform(value->constant()) : std::nullopt;
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

// Whether the operation multiplies x with its other operand, or divides it by that.
inline bool Scales(const Operation& op, const Value* x) {
  return op.is("mul") ? op.value("x") == x || op.value("y") == x
                      : op.is("real_div") && op.value("x") == x;
}
// The number by which it does so, and what it scales; nothing where it is no number, or 0.
std::optional<double> ScaleOf(const Operation& op, Value*& scaled);

// Whether the result consists of elements of operand x, and nothing else.
inline bool MovesX(const Operation& op) {
  return op.def->moves != Moves::kNone && op.results.size() == 1 && op.def->Find("x") >= 0 &&
         op.value("x");
}

// Whether the result is all of operand x in its order, under another shape.
inline bool Reshapes(const Operation& op) { return op.def->moves == Moves::kShape && MovesX(op); }

// d when value = d * d, however it is written; null otherwise.
Value* SquareRoot(const Value* value);

// The constant integers of a parameter that names dimensions of a value of this rank, each counted
// from the front; nothing when they are not constant.
std::optional<std::vector<int64_t>> ConstantAxes(const Operation& op, std::string_view param,
                                                 int rank);

// x when z = x - max(x) over these axes, perhaps with another number for a maximum that is infinite;
// null otherwise.
Value* Unshifted(const Value* z, const std::vector<int64_t>& axes);

// Whether x is divided by its largest magnitudes, as safe-norms divides rows.
bool IsDividedByGreatest(const Value* x);

// The constant shape operand with which reshape makes `to` out of any value with as many elements:
// the numbers, with -1 for the one dimension that is not a number. Empty when there are more, or
// none at all (a scalar), or a 0.
Tensor ShapeOperand(const Shape& to);

// Whether `from` may stand wherever `to` is used, also as an output: an output must not become an
// input, a constant or a value that is an output already.
inline bool CanReplace(const Value* to, const Value* from) {
  if (!to->is_output()) return true;
  return from->def && !from->is_constant() && !from->is_output() &&
         from->def->block == to->def->block;
}

// Whether the value is rounded to whole numbers, perhaps after sums and bounds: then its last bit
// decides between two of them, and quantised models amplify that.
bool DecidesSteps(const Value* value);
// Below it binary16 loses digits.
inline constexpr double kLeastNormal = 0x1p-14;
// Returns whether every number of a constant of floats is smaller than `limit`; false without a
// constant. Stops reading at the first number that is not.
bool IsBelow(const Tensor& constant, double limit);
// An encoded constant with each slice of its first dimension multiplied by a number, in the same
// encoding; empty where that has none for it.
Tensor ScaledRows(const Tensor& constant, const std::vector<double>& scale);

// Whether the operation does more than compute its results.
bool HasEffects(const Operation& op);

// Lets `to` stand for the only result of `op`, and erases `op` with what only it used. An existing
// value `to` needs CanReplace. Both have the same dtype and rank; where their dimensions are
// written with other symbols, types downstream are inferred again.
void Replace(Operation* op, Value* to);

// Infers again, in program order, what depends on a value of the function.
void InferUsers(const Value* value, Function& function);

// Erases the operation, whose results nobody uses, and what only it used. All that goes stands
// before it.
void EraseUnused(Operation* op);

// A builder in front of `op` that names and locates what it makes after it.
inline Builder BuilderBefore(Operation* op, PassContext& context) {
  Builder builder(*op->block, context.diagnostics, op);
  builder.SetName(op->results.empty() ? op->name : op->result()->name);
  builder.SetLocation(op->location);
  return builder;
}

// The operation's arguments as the builder takes them, without those named.
Builder::Args ArgsWithout(const Operation& op, std::initializer_list<std::string_view> left_out);

// Runs `rewrite` on every operation, nested blocks included, until a whole round changes nothing.
// `rewrite` may erase the operation that it is given and operations before it.
bool RewriteAll(Program& program, const std::function<bool(Operation*)>& rewrite);

}  // namespace mlc
