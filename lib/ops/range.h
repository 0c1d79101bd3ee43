// lib/ops/range.h - how large results get: the interval of a result from those of the operands.
//
// A row's `range` is a bound, not always the least: whatever the operands are in their intervals,
// each element that eval gives and that is not NaN lies in the interval. Operands hold no NaN, -0
// counts as 0, and what is reduced or slid over has elements. A test draws operands and holds eval against it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lib/ir/op_def.h"

namespace mlc {

struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool Contains(double value) const { return low <= value && value <= high; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The least interval that holds both.
inline Interval Join(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}
// Of sums, differences and products of an element of each. Nothing times what has no bound is 0.
Interval operator+(Interval a, Interval b);
Interval operator-(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
// a + b where what was rounded before cancels.
Interval RoundedSum(Interval a, Interval b);
Interval Reciprocal(Interval x);
Interval Magnitude(Interval x);  // of |x|
Interval Square(Interval x);
// Of sums of `least` to `most` elements, with what rounding in double adds; `most` may be infinite.
Interval Sum(Interval x, double least, double most);
// Of `count`, which is infinite when it is not known.
inline Interval Sum(Interval x, double count) {
  return Sum(x, std::isinf(count) ? 0 : count, count);
}

// What elements of the type can be; what those of a constant are, as far as it is read (64 Ki
// elements).
Interval IntervalOf(DType dtype);
Interval IntervalOf(const Tensor& constant);

class RangeContext : public OpContext {
 public:
  using Intervals = std::vector<std::vector<Interval>>;
  // `intervals` stand as `args` do. Of an operation of a program, which outlives the context.
  RangeContext(const Operation& op, Intervals intervals);
  RangeContext(const OpDef& def, Args args, Intervals intervals, std::vector<Type> result_types)
      : OpContext(def, std::move(args)),
        result_types_(std::move(result_types)),
        intervals_(std::move(intervals)) {}
  // Of an operand, or of the default of one that is left out.
  Interval in(std::string_view name, int i = 0) const;
  Interval all(std::string_view name) const;                       // of a variadic parameter
  std::optional<double> Number(std::string_view name) const;       // of a known scalar
  bool SameOperand(std::string_view a, std::string_view b) const;  // one value twice
  // Elements of the operand in one dimension, or in those that the result lacks or has as 1;
  // infinite when not known.
  double Size(std::string_view name, int axis) const;
  double Reduced(std::string_view name) const;
  const Type& result_type(int result) const;
  DType out_dtype(int result) const { return result_type(result).dtype; }

 private:
  std::vector<Type> result_types_;  // where there is no operation
  Intervals intervals_;
};

// What the row says of a result, rounded to its type as eval rounds; what the type can hold where
// the row says nothing, and for integers that may wrap.
Interval RangeOf(const RangeContext& context, int result);

// Rules that several families share.
Interval RangeOfX(const RangeContext& context, int);        // elements of x, or between some
Interval RangeOfXOrZero(const RangeContext& context, int);  // those and 0
Interval RangeOfValues(const RangeContext& context, int);   // elements of "values"
Interval RangeOfType(const RangeContext& context, int);     // all that the type holds
Interval RangeOfPlaces(const RangeContext& context, int);   // places along "axis" of x
// Numbers that count from `low` to `high`, which is infinite when not known: no count leaves its type.
Interval Counts(double low, double high, DType dtype);
Interval RangeOfProducts(const RangeContext& context, int);  // "x" with rows of "weight", and bias
template <double (*kFunction)(double)>
Interval RangeRising(const RangeContext& context, int) {
  Interval x = context.in("x");
  return {kFunction(x.low), kFunction(x.high)};
}

}  // namespace mlc
