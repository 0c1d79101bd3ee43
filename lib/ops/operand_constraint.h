// lib/ops/operand_constraint.h - what operations require of the values that they read.
//
// A row's `wants` are rules by parameter: the values for which an operation is meaningful (valid
// indices, nonnegative radicands) or at which its result changes (thresholds, bounds). An operation
// that moves or computes elements derives its requirement from those of its users.
// lib/analysis/constraint_propagation.h propagates them through a function, from users to inputs.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"
#include "lib/ops/range_rules.h"

namespace mlc {

// The combined requirements of the users of a value on its elements.
struct OperandConstraint {
  double low = -std::numeric_limits<double>::infinity(),
         high =
             std::numeric_limits<double>::infinity();  // values outside are rejected or meaningless
  double soft_low = std::numeric_limits<double>::infinity(),
         soft_high =
             -std::numeric_limits<double>::infinity();  // where results change: comparisons, clamps
  std::vector<std::pair<double, double>> parts;         // bounds by index in the last dimension
  double center = 0, scale = 0;       // typical magnitude of a float; scale 0: unknown
  bool mask = false, opaque = false;  // opaque: some user has no rule
  int valid = -1;                     // for a mask: the value that means "included"; -1: either
  const Operation* branch = nullptr;  // required only through one branch of this select
  std::string why;

  bool bounded() const {
    return low > -std::numeric_limits<double>::infinity() ||
           high < std::numeric_limits<double>::infinity();
  }

  static OperandConstraint Bounded(double low, double high, std::string why);
  static OperandConstraint Soft(double low, double high, std::string why);
  static OperandConstraint Opaque();
};

// Combines the requirements of two users. Requirements of the two branches of one select apply only
// where that branch is chosen.
OperandConstraint Meet(OperandConstraint a, const OperandConstraint& b);

// The facts available to a rule, for one choice of the symbolic dimensions.
struct ConstraintWalk {
  std::function<const OperandConstraint&(const Value&)> asked;  // requirements of its users
  // The interval of an operand that depends on the inputs only through their sizes.
  std::function<std::optional<Interval>(const Operand&)> known;
  std::function<double(const Dim&)> size;
};

// One operand of an operation, for which a rule computes the requirement.
class ConstraintContext {
 public:
  ConstraintContext(const ConstraintWalk& walk, const Operation& operation,
                    std::string_view parameter, size_t place, const Value& operand)
      : op(operation), param(parameter), index(place), value(operand), walk_(walk) {}
  const Operation& op;
  std::string_view param;
  size_t index;  // index within a variadic parameter
  const Value& value;

  bool is_float() const { return IsFloat(value.type.dtype); }
  const OperandConstraint& Asked() const {
    return walk_.asked(*op.result());
  }  // of the users of the first result
  // The requirement on the first result, for a result that contains the elements of the operand.
  // Bounds by index are kept if the last dimension is unchanged; otherwise they are intersected.
  OperandConstraint Moved() const;
  OperandConstraint MovedFromAll() const;  // derived from the users of all results
  const OperandConstraint& Of(const Value& other) const { return walk_.asked(other); }
  // nullopt also if the operand is omitted.
  std::optional<Interval> Known(std::string_view name) const;
  std::optional<Interval> Known(const Operand& operand) const { return walk_.known(operand); }
  const Operand& Other() const { return op.arg(param == "x" ? "y" : "x")[0]; }  // of x and y
  std::optional<Interval> KnownOther() const { return walk_.known(Other()); }
  double Size(const Dim& dim) const { return walk_.size(dim); }
  double Elements() const;  // element count of the operand

 private:
  const ConstraintWalk& walk_;
};

std::string Quoted(const Operation& op);  // gather "y"

// The requirement on one operand. Without a rule, a view passes on the requirement of its result;
// an operand that no rule covers requires integers.
OperandConstraint ConstraintOfResults(const ConstraintContext& context);

// Rules shared by several families.
OperandConstraint ResultConstraint(const ConstraintContext& context);  // that of the result
// The requirement on one of n unknown terms of a sum.
OperandConstraint Share(OperandConstraint constraint, double n);
// The requirement on x, given that on factor * x + offset.
OperandConstraint Through(OperandConstraint constraint, double factor, double offset);
// A clamp to [low, high] accepts values outside these bounds; values on both sides of each bound
// are worth testing.
OperandConstraint Clamped(const ConstraintContext& context, OperandConstraint constraint,
                          double low, double high);
OperandConstraint ConstraintOfSums(
    const ConstraintContext& context);  // elements that are summed, possibly all of them
OperandConstraint ConstraintOfCounts(
    const ConstraintContext& context);    // sizes and counts: a small number
inline constexpr double kMasked = -1000;  // masks add or select values below this
inline constexpr double kFew = 4;         // for values that may be large: trip counts, repetitions

// Arithmetic, comparisons and logic: elementwise_binary_constraints.cpp.
OperandConstraint WantOfAdd(const ConstraintContext& context);
OperandConstraint WantOfSub(const ConstraintContext& context);
OperandConstraint WantOfMul(const ConstraintContext& context);
OperandConstraint WantOfQuotient(const ConstraintContext& context);
OperandConstraint WantOfExtremum(const ConstraintContext& context);
OperandConstraint WantOfComparison(const ConstraintContext& context);
OperandConstraint WantOfLogic(const ConstraintContext& context);
OperandConstraint WantOfBase(const ConstraintContext& context);  // base of a power
OperandConstraint WantOfExponent(const ConstraintContext& context);
// The upper bound that a loop condition imposes on a loop variable (an input of the condition
// block); null: none.
const Operand* LimitOf(const Value& variable);

}  // namespace mlc
