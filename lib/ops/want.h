// lib/ops/want.h - what operations ask of the values that they read.
//
// A row's `wants` are rules, by parameter: which numbers an operand must be for the operation to mean
// anything (places in a dimension, what is under a root), or which numbers tell its results apart (thresholds,
// bounds). What moves or computes elements asks what the users of its results ask, translated back.
// lib/analysis/wants.h goes through a function with them, from users to inputs.
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

// What the users of a value ask of its elements.
struct Want {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();  // outside is refused or makes no sense
  double soft_low = std::numeric_limits<double>::infinity(),
         soft_high =
             -std::numeric_limits<double>::infinity();  // where results change: tests, clamps
  std::vector<std::pair<double, double>> parts;         // bounds by place in the last dimension
  double center = 0, scale = 0;       // where a float is meant to lie; scale 0: no idea
  bool mask = false, opaque = false;  // opaque: some user is not understood
  int valid = -1;                     // of a mask: the value of what takes part; -1: any mask
  const Operation* branch = nullptr;  // asked for through one side of this select
  std::string why;

  bool bounded() const {
    return low > -std::numeric_limits<double>::infinity() ||
           high < std::numeric_limits<double>::infinity();
  }

  static Want Bounded(double low, double high, std::string why);
  static Want Soft(double low, double high, std::string why);
  static Want Opaque();
};

// Both users' wishes; two sides of one select are asked for where that side is taken.
Want Meet(Want a, const Want& b);

// What the walk knows, at one choice of sizes for the open dimensions.
struct WantWalk {
  std::function<const Want&(const Value&)> asked;  // what the users of a value ask of it
  // The interval of what depends on inputs through their sizes only.
  std::function<std::optional<Interval>(const Operand&)> known;
  std::function<double(const Dim&)> size;
};

// One operand of an operation, about which a rule is asked.
class WantContext {
 public:
  WantContext(const WantWalk& walk, const Operation& operation, std::string_view parameter,
              size_t place, const Value& operand)
      : op(operation), param(parameter), index(place), value(operand), walk_(walk) {}
  const Operation& op;
  std::string_view param;
  size_t index;  // of a variadic parameter
  const Value& value;

  bool is_float() const { return IsFloat(value.type.dtype); }
  const Want& Asked() const { return walk_.asked(*op.result()); }  // of the first result
  // The same, for a result that has the elements of the operand. Bounds by place stay where the last dimension
  // does; elsewhere what suits every place is left.
  Want Moved() const;
  Want MovedFromAll() const;  // of all results
  const Want& Of(const Value& other) const { return walk_.asked(other); }
  // Nothing, too, when the operand is left out.
  std::optional<Interval> Known(std::string_view name) const;
  std::optional<Interval> Known(const Operand& operand) const { return walk_.known(operand); }
  const Operand& Other() const { return op.arg(param == "x" ? "y" : "x")[0]; }  // of x and y
  std::optional<Interval> KnownOther() const { return walk_.known(Other()); }
  double Size(const Dim& dim) const { return walk_.size(dim); }
  double Elements() const;  // of the operand

 private:
  const WantWalk& walk_;
};

std::string Quoted(const Operation& op);  // gather "y"

// What the rows say of one operand. Without a rule, a view asks what is asked of its result, and whole numbers
// are asked for what is not understood.
Want AskedOf(const WantContext& context);

// Rules that several families share.
Want WantSame(const WantContext& context);  // what is asked of the results
// A part of a sum that is wanted: of n unknown ones.
Want Share(Want want, double n);
// The wish for x where its user asks this of factor * x + offset.
Want Through(Want want, double factor, double offset);
// What a clamp to [low, high] brings inside need not lie inside; values on both sides of it are worth a try.
Want Clamped(const WantContext& context, Want want, double low, double high);
Want WantOfSums(const WantContext& context);  // of elements that are summed, perhaps all
Want WantFew(const WantContext& context);     // sizes and counts: some, not many
inline constexpr double kMasked = -1000;      // what masks add or choose is below
inline constexpr double kFew = 4;             // of what may be many: turns, repetitions

// Arithmetic, comparisons and logic: elementwise_binary_wants.cpp.
Want WantOfAdd(const WantContext& context);
Want WantOfSub(const WantContext& context);
Want WantOfMul(const WantContext& context);
Want WantOfQuotient(const WantContext& context);
Want WantOfExtremum(const WantContext& context);
Want WantOfComparison(const WantContext& context);
Want WantOfLogic(const WantContext& context);
Want WantOfBase(const WantContext& context);  // of a power
Want WantOfExponent(const WantContext& context);
// What the test of a loop keeps a variable of it (an input of the test) below; null: nothing.
const Operand* LimitOf(const Value& variable);

}  // namespace mlc
