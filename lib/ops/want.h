// lib/ops/want.h - what operations require of the values that they read.
//
// A row's `wants` are rules by parameter: the values for which an operation is meaningful (valid
// indices, nonnegative radicands) or at which its result changes (thresholds, bounds). An operation
// that moves or computes elements derives its requirement from those of its users.
// lib/analysis/wants.h propagates them through a function, from users to inputs.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"
#include "lib/ops/range.h"

namespace mlc {

// The combined requirements of the users of a value on its elements.
struct Want {
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

  static Want Bounded(double low, double high, std::string why);
  static Want Soft(double low, double high, std::string why);
  static Want Opaque();
};

// Combines the requirements of two users. Requirements of the two branches of one select apply only
// where that branch is chosen.
Want Meet(Want a, const Want& b);

// The facts available to a rule, for one choice of the symbolic dimensions.
struct WantWalk {
  std::function<const Want&(const Value&)> asked;  // requirements of its users
  // The interval of an operand that depends on the inputs only through their sizes.
  std::function<std::optional<Interval>(const Operand&)> known;
  std::function<double(const Dim&)> size;
};

// One operand of an operation, for which a rule computes the requirement.
class WantContext {
 public:
  WantContext(const WantWalk& walk, const Operation& operation, std::string_view parameter,
              size_t place, const Value& operand)
      : op(operation), param(parameter), index(place), value(operand), walk_(walk) {}
  const Operation& op;
  std::string_view param;
  size_t index;  // index within a variadic parameter
  const Value& value;

  bool is_float() const { return IsFloat(value.type.dtype); }
  const Want& Asked() const {
    return walk_.asked(*op.result());
  }  // of the users of the first result
  // The requirement on the first result, for a result that contains the elements of the operand.
  // Bounds by index are kept if the last dimension is unchanged; otherwise they are intersected.
  Want Moved() const;
  Want MovedFromAll() const;  // of the users of all results
  const Want& Of(const Value& other) const { return walk_.asked(other); }
  // nullopt also if the operand is omitted.
  std::optional<Interval> Known(std::string_view name) const;
  std::optional<Interval> Known(const Operand& operand) const { return walk_.known(operand); }
  const Operand& Other() const { return op.arg(param == "x" ? "y" : "x")[0]; }  // of x and y
  std::optional<Interval> KnownOther() const { return walk_.known(Other()); }
  double Size(const Dim& dim) const { return walk_.size(dim); }
  double Elements() const;  // element count of the operand

 private:
  const WantWalk& walk_;
};

std::string Quoted(const Operation& op);  // gather "y"

// The requirement on one operand. Without a rule, a view passes on the requirement of its result;
// an operand that no rule covers requires integers.
Want AskedOf(const WantContext& context);

// Rules shared by several families.
Want WantSame(const WantContext& context);  // that of the result
// The requirement on one of n unknown terms of a sum.
Want Share(Want want, double n);
// The requirement on x, given that on factor * x + offset.
Want Through(Want want, double factor, double offset);
// A clamp to [low, high] accepts values outside these bounds; values on both sides of each bound
// are worth testing.
Want Clamped(const WantContext& context, Want want, double low, double high);
Want WantOfSums(const WantContext& context);  // elements that are summed, possibly all of them
Want WantFew(const WantContext& context);     // sizes and counts: a small number
inline constexpr double kMasked = -1000;      // masks add or select values below this
inline constexpr double kFew = 4;  // for values that may be large: trip counts, repetitions

// Arithmetic, comparisons and logic: elementwise_binary_wants.cpp.
Want WantOfAdd(const WantContext& context);
Want WantOfSub(const WantContext& context);
Want WantOfMul(const WantContext& context);
Want WantOfQuotient(const WantContext& context);
Want WantOfExtremum(const WantContext& context);
Want WantOfComparison(const WantContext& context);
Want WantOfLogic(const WantContext& context);
Want WantOfBase(const WantContext& context);  // base of a power
Want WantOfExponent(const WantContext& context);
// The upper bound that a loop condition imposes on a loop variable (an input of the condition
// block); null: none.
const Operand* LimitOf(const Value& variable);

}  // namespace mlc
