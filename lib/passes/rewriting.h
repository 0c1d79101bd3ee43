// lib/passes/rewriting.h - predicates on values and operations for rewrites, and Replace, which
// every rewrite uses to replace an operation.
#pragma once

#include <cmath>
#include <optional>

#include "lib/passes/pass.h"

namespace mlc::passes {

// Returns whether the operation converts between element types.
inline bool IsCast(const Operation& op) { return op.is("cast"); }

// Returns the operation `name` that defines `value`, or null.
inline Operation* DefinedBy(const Value* value, std::string_view name) {
  return value && value->def && value->def->is(name) ? value->def : nullptr;
}

// Returns the only user of a value that is not an output, if it is in the value's own block; null
// otherwise.
inline Operation* SoleUser(const Value* value) {
  if (value->is_output() || value->users.size() != 1) return nullptr;
  Operation* user = value->users.front();
  return value->def && value->def->block != user->block ? nullptr : user;
}
inline Operation* SoleUser(const Value* value, std::string_view name) {
  Operation* user = SoleUser(value);
  return user && user->is(name) ? user : nullptr;
}

// Returns the number that all elements of a float or integer constant equal, or nothing. Reads at
// most 64 Ki elements.
std::optional<double> Uniform(const Tensor& tensor);
inline std::optional<double> UniformConstant(const Value* value) {
  return value && value->is_constant() ? Uniform(value->constant()) : std::nullopt;
}
inline bool IsUniform(const Value* value, double number, double tolerance = 0) {
  std::optional<double> uniform = UniformConstant(value);
  return uniform && std::fabs(*uniform - number) <= tolerance * std::fabs(number);
}

// For a commutative binary operation: returns the operand that is not `value`, or null if `value`
// is not an operand.
inline Value* OtherOperand(const Operation* op, const Value* value) {
  if (op->value("x") == value) return op->value("y");
  return op->value("y") == value ? op->value("x") : nullptr;
}
// Returns {constant operand, run-time operand} of a binary operation, or nulls if both or neither
// are constant.
inline std::pair<Value*, Value*> SplitConstant(const Operation* op) {
  Value *x = op->value("x"), *y = op->value("y");
  if (!x || !y || x->is_constant() == y->is_constant()) return {nullptr, nullptr};
  return x->is_constant() ? std::pair{x, y} : std::pair{y, x};
}

// Returns whether the operation multiplies x by its other operand, or divides x by it.
inline bool Scales(const Operation& op, const Value* x) {
  return op.is("mul") ? op.value("x") == x || op.value("y") == x
                      : op.is("real_div") && op.value("x") == x;
}
// Returns the factor of such an operation, and the scaled operand in `scaled`; nothing if the
// factor is not a uniform constant or is 0.
std::optional<double> ScaleOf(const Operation& op, Value*& scaled);

// Returns whether the result consists of elements of operand x only.
inline bool MovesX(const Operation& op) {
  return op.def->moves != Moves::kNone && op.results.size() == 1 && op.def->Find("x") >= 0 &&
         op.value("x");
}

// Returns whether the result has the elements of operand x in the same order, with another shape.
inline bool Reshapes(const Operation& op) { return op.def->moves == Moves::kShape && MovesX(op); }

// Returns d if the value is mul(d, d), square(d) or pow(d, 2); null otherwise.
Value* SquareRoot(const Value* value);

// Returns the constant axes of a parameter for a value of this rank, normalised to non-negative
// numbers; nothing if they are not constant.
std::optional<std::vector<int64_t>> ConstantAxes(const Operation& op, std::string_view param,
                                                 int rank);

// Returns x when z = x - max(x) over these axes, where an infinite maximum may be replaced by
// another number; null otherwise.
Value* Unshifted(const Value* z, const std::vector<int64_t>& axes);

// Returns whether x is divided by its largest magnitude along an axis, as safe-norms divides rows.
bool IsDividedByGreatest(const Value* x);

// Returns the constant shape operand with which reshape converts any value with as many elements to
// shape `to`, with -1 for a dynamic dimension. Empty for more than one dynamic dimension, a
// scalar, or a dimension of 0.
Tensor ShapeOperand(const Shape& to);

// Returns whether `from` may replace all uses of `to`, including a use as an output: an output must
// not become an input, a constant or a second use of another output.
inline bool CanReplace(const Value* to, const Value* from) {
  if (!to->is_output()) return true;
  return from->def && !from->is_constant() && !from->is_output() &&
         from->def->block == to->def->block;
}

// Returns whether the value is rounded to integers, possibly after additions and clamps: its last
// bit then decides between two integers, a difference that quantised models amplify.
bool DecidesSteps(const Value* value);
// The smallest normal fp16 number; below it fp16 loses precision.
inline constexpr double kLeastNormal = 0x1p-14;
// Returns whether the magnitudes of all elements are below `limit`; false without a tensor. Stops
// reading soon after the first element that is not.
bool IsBelow(const Tensor& constant, double limit);
// Returns an encoded constant with each slice of its first dimension scaled, in the same encoding;
// empty if that encoding has no scales per slice.
Tensor ScaledRows(const Tensor& constant, const std::vector<double>& scale);

// Returns the weight of a convolution or linear layer with every output channel multiplied by its
// factor; computes in double, and reads the weight block by block when the result is read.
// `transposed` and `groups` are those of conv_transpose.
Tensor ScaledChannels(const Tensor& weight, std::vector<double> scale, bool transposed = false,
                      int64_t groups = 1);

// Returns the product of the dimensions from `first` on.
inline Dim ProductFrom(const Shape& shape, int64_t first) {
  return Product(Shape(shape.begin() + first, shape.end()));
}

// The only dimension in which a slice with stride 1 is not complete, and its bounds.
struct Cut {
  int64_t axis, begin, end;
  bool squeezes;  // whether the slice removes the dimension
};
std::optional<Cut> OnlyCut(const Operation& op);

// Returns whether the operation has side effects.
bool HasEffects(const Operation& op);

// Replaces all uses of the only result of `op` by `to`, and erases `op` with the operations that
// become unused. If `to` already existed, CanReplace must hold. Both values have the same dtype and
// rank; if their dimensions differ in symbols, the types of all users are inferred again. Returns
// true, like a rewrite that changed the program.
bool Replace(Operation* op, Value* to);

// Infers the types of all operations that depend on the value, in program order.
void InferUsers(const Value* value, Function& function);

// Erases an operation whose results have no users, and the operations that become unused. All
// erased operations precede it.
void EraseUnused(Operation* op);

// Returns a builder that inserts before `op` and uses its name and location.
inline Builder BuilderBefore(Operation* op, PassContext& context) {
  Builder builder(*op->block, context.diagnostics, op);
  builder.SetName(op->results.empty() ? op->name : op->result()->name);
  builder.SetLocation(op->location);
  return builder;
}

// Replaces the only result of `op` by that of a new operation, like Replace, and returns true.
inline bool ReplaceBy(Operation* op, PassContext& context, std::string_view name,
                      Builder::Args args) {
  return Replace(op, BuilderBefore(op, context).Make(name, std::move(args)));
}

// Returns the arguments of the operation in the builder's form, without those listed.
Builder::Args ArgsWithout(const Operation& op, std::initializer_list<std::string_view> left_out);

// Applies `run` to each function, and returns whether it returned true for any.
template <class F>
bool OnEachFunction(Program& program, F run) {
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions) changed |= run(*function);
  return changed;
}

// Applies `rewrite` to every operation, in nested blocks too, until a full round changes nothing.
// `rewrite` may erase the given operation and operations before it.
bool RewriteAll(Program& program, const std::function<bool(Operation*)>& rewrite);
// RewriteAll as the function of a pass: for each operation, the first of these rewrites that
// applies.
template <bool (*... kRewrites)(Operation*, PassContext&)>
bool Rewrites(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return (kRewrites(op, context) || ...); });
}
// Like Rewrites; changes nothing if the program stays in fp32.
template <bool (*... kRewrites)(Operation*, PassContext&)>
bool RewritesForFp16(Program& program, PassContext& context) {
  return context.precision != PassContext::Precision::kFp32 &&
         Rewrites<kRewrites...>(program, context);
}

}  // namespace mlc::passes
