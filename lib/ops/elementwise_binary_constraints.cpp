// What arithmetic, comparisons and logic require of their operands, derived from the requirements
// on their results.
#include <algorithm>
#include <cmath>

#include "lib/ops/operand_constraint.h"

namespace mlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Middle(Interval x) { return (x.low + x.high) / 2; }

// Returns whether a value is a mask minus 1.
bool IsMinusOne(const ConstraintContext& context) {
  const Operation* def = context.value.def;
  if (!def || !def->is("sub")) return false;
  std::optional<Interval> one = context.Known(def->arg("y")[0]);
  return one && *one == Interval{1, 1};
}

// Returns whether the operation is in the condition block of a loop.
bool IsTest(const Operation& op) {
  const Operation* loop = op.block->parent;
  return loop && loop->is("while_loop") && loop->blocks[0].get() == op.block;
}

}  // namespace

OperandConstraint WantOfAdd(const ConstraintContext& context) {
  OperandConstraint constraint = context.Moved();
  std::optional<Interval> other = context.KnownOther();
  if (!other) return Share(std::move(constraint), 2);
  bool masks = constraint.mask;
  double middle = Middle(*other);
  OperandConstraint moved = Through(std::move(constraint), 1, std::isfinite(middle) ? middle : 0);
  // The sum must be valid for every value of the other operand.
  if (moved.low > -kInfinity) moved.low += middle - other->low;
  if (moved.high < kInfinity) moved.high -= other->high - middle;
  moved.mask = masks;
  return moved;
}

OperandConstraint WantOfSub(const ConstraintContext& context) {
  OperandConstraint constraint = context.Moved();
  std::optional<Interval> other = context.KnownOther();
  if (!other)
    return constraint.bounded() || constraint.opaque ? OperandConstraint::Opaque()
                                                     : OperandConstraint();
  double middle = Middle(*other);
  if (!std::isfinite(middle)) return {};
  if (context.param == "x") {
    OperandConstraint moved = Through(std::move(constraint), 1, -middle);
    if (moved.low > -kInfinity) moved.low += other->high - middle;
    if (moved.high < kInfinity) moved.high -= middle - other->low;
    return moved;
  }
  bool masks = constraint.mask && constraint.valid >= 0;
  OperandConstraint moved = Through(std::move(constraint), -1, middle);
  if (masks) moved.valid = 1 - moved.valid;  // 1 - mask
  return moved;
}

OperandConstraint WantOfMul(const ConstraintContext& context) {
  OperandConstraint constraint = context.Moved();
  std::optional<Interval> other = context.KnownOther();
  if (!other) {
    if (!constraint.bounded())
      return constraint.opaque ? OperandConstraint::Opaque() : OperandConstraint();
    OperandConstraint part = Share(std::move(constraint), 1);
    if (part.high < kInfinity) part.high = std::floor(std::sqrt(std::max(0.0, part.high)));
    part.low = std::max(part.low, 0.0);
    return part;
  }
  if (other->high <= kMasked || (other->low >= -kMasked && IsMinusOne(context)))
    return {.mask = true,
            .valid = other->high <= kMasked ? 0 : 1,
            .why = fmt::format("mask of {}", Quoted(context.op))};
  double factor = Middle(*other);
  if (!std::isfinite(factor)) return {};
  if (constraint.mask && other->low >= 0 && other->high <= 1) return constraint;
  return Through(std::move(constraint), factor, 0);
}

OperandConstraint WantOfQuotient(const ConstraintContext& context) {
  bool integers = !context.is_float();
  if (context.param == "y")
    return integers
               ? OperandConstraint::Bounded(1, 9, fmt::format("divisor of {}", Quoted(context.op)))
               : OperandConstraint();
  if (context.op.is("mod")) return {};
  std::optional<Interval> other = context.Known("y");
  double factor = other ? Middle(*other) : 1;
  if (factor == 0 || !std::isfinite(factor)) return {};
  OperandConstraint constraint = Through(context.Moved(), 1 / factor, 0);
  if (integers && constraint.high < kInfinity) constraint.high += factor - 1;
  return constraint;
}

OperandConstraint WantOfExtremum(const ConstraintContext& context) {
  OperandConstraint constraint = context.Moved();
  std::optional<Interval> other = context.KnownOther();
  if (!other) return constraint;
  return Clamped(context, std::move(constraint), context.op.is("maximum") ? other->low : -kInfinity,
                 context.op.is("minimum") ? other->high : kInfinity);
}

OperandConstraint WantOfComparison(const ConstraintContext& context) {
  const Operation& op = context.op;
  bool integers = !context.is_float();
  if (integers && IsTest(op))
    return OperandConstraint::Bounded(0, kFew,
                                      fmt::format("trip count of {}", Quoted(*op.block->parent)));
  std::optional<Interval> other = context.KnownOther();
  if (!other) return {};
  auto [low, high] = *other;
  bool equality = op.is("equal") || op.is("not_equal");
  bool below =
      op.def->name.starts_with("less") == (context.param == "x");  // x < bound or bound > y
  bool or_equal = op.is("less_equal") || op.is("greater_equal");
  bool steps = integers && low >= 0 && low <= 1 && high > low && high - low + 1 <= 1e6 &&
               context.Other().type().rank() > 0;
  if (steps && equality)
    return OperandConstraint::Bounded(low, high,
                                      fmt::format("positions compared by {}", Quoted(op)));
  // n > step, or not n <= step: n may exceed the last step by one, and is at least 1.
  if (steps) {
    double more = below == or_equal ? 1 : 0;
    return OperandConstraint::Bounded(low + more, high + more,
                                      fmt::format("lengths compared by {}", Quoted(op)));
  }
  OperandConstraint constraint;
  if (integers) {
    // Both outcomes should occur: c - 1 and c, or c and c + 1.
    bool after = equality || below == or_equal;
    constraint = after ? OperandConstraint::Soft(low, high + 1, "")
                       : OperandConstraint::Soft(low - 1, high, "");
  } else {
    constraint = OperandConstraint::Soft(low - 1, high + 1, "");
  }
  constraint.why = fmt::format("threshold of {}", Quoted(op));
  // A comparison that distinguishes 0 from 1 passes a mask on.
  if (low == high && low >= 0 && low <= 1) {
    bool one = low == 1;
    bool keeps = op.is("equal") ? one : op.is("not_equal") ? !one : !below;
    const OperandConstraint& result = context.Asked();
    constraint.mask = true;
    if (result.mask && result.valid >= 0)
      constraint.valid = keeps ? result.valid : 1 - result.valid;
    if (!integers) {
      constraint.soft_low = 0;
      constraint.soft_high = 1;
    }
  }
  return constraint;
}

OperandConstraint WantOfBase(const ConstraintContext& context) {
  std::optional<Interval> exponent = context.Known("y");
  bool whole =
      exponent && exponent->low == exponent->high && exponent->low == std::floor(exponent->low);
  if (whole || !context.is_float()) return {};
  return OperandConstraint::Bounded(0, kInfinity, fmt::format("domain of {}", Quoted(context.op)));
}

OperandConstraint WantOfExponent(const ConstraintContext& context) {
  if (context.is_float()) return {};
  return OperandConstraint::Bounded(0, 7, fmt::format("exponent of {}", Quoted(context.op)));
}

OperandConstraint WantOfLogic(const ConstraintContext& context) { return context.Asked(); }

const Operand* LimitOf(const Value& variable) {
  for (const Operation* user : variable.users)
    if (user->is("less") && user->value("x") == &variable) return &user->arg("y")[0];
  return nullptr;
}

}  // namespace mlc
