// lib/ops/range_rules.h - range analysis: the interval of a result from those of the operands.
//
// A row's `range` is a sound bound, not necessarily the tightest: for all operands within their
// intervals, every result element of eval that is not NaN lies in the returned interval. Operands
// contain no NaN, -0 equals 0, and reductions and windows have at least one element. A test checks
// the bounds against eval on random operands.
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

// The smallest interval that contains both.
inline Interval Join(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}
// The interval of sums, differences and products of an element of each operand. Zero times infinity
// is 0.
Interval operator+(Interval a, Interval b);
Interval operator-(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
// a + b where rounding errors of earlier operations may cancel.
Interval RoundedSum(Interval a, Interval b);
Interval Reciprocal(Interval x);
Interval Magnitude(Interval x);  // |x|
Interval Square(Interval x);
// The interval of sums of `least` to `most` elements, including rounding errors of double; `most`
// may be infinite.
Interval Sum(Interval x, double least, double most);
// The same for exactly `count` elements; an infinite `count` means unknown.
inline Interval Sum(Interval x, double count) {
  return Sum(x, std::isinf(count) ? 0 : count, count);
}

// The values that a dtype represents, and the range of a constant, of which at most 64 Ki elements
// are read.
Interval IntervalOf(DType dtype);
Interval IntervalOf(const Tensor& constant);

class RangeContext : public OpContext {
 public:
  using Intervals = std::vector<std::vector<Interval>>;
  // `intervals` is indexed like `args`. The first constructor is for an operation of a program,
  // which must outlive the context.
  RangeContext(const Operation& op, Intervals intervals);
  RangeContext(const OpDef& def, Args args, Intervals intervals, std::vector<Type> result_types)
      : OpContext(def, std::move(args)),
        result_types_(std::move(result_types)),
        intervals_(std::move(intervals)) {}
  // The interval of an operand, or of its default if it is omitted.
  Interval in(std::string_view name, int i = 0) const;
  Interval all(std::string_view name) const;  // all operands of a variadic parameter
  std::optional<double> Number(std::string_view name) const;  // value of a known scalar
  bool SameOperand(std::string_view a,
                   std::string_view b) const;  // both operands are the same value
  // Size is the number of elements in one dimension of an operand; Reduced is the number in the
  // dimensions that the result lacks or has with size 1. Infinite if unknown.
  double Size(std::string_view name, int axis) const;
  double Reduced(std::string_view name) const;
  const Type& result_type(int result) const;
  DType out_dtype(int result) const { return result_type(result).dtype; }

 private:
  std::vector<Type> result_types_;  // if there is no operation
  Intervals intervals_;
};

// The interval that the row gives for a result, rounded to its dtype as eval rounds. All values of
// the dtype if the row has no rule, or for integers that may wrap.
Interval RangeOf(const RangeContext& context, int result);

// Rules shared by several families.
Interval RangeOfX(const RangeContext& context, int);        // elements of x, or values between them
Interval RangeOfXOrZero(const RangeContext& context, int);  // elements of x, or 0
Interval RangeOfValues(const RangeContext& context, int);   // elements of "values"
Interval RangeOfType(const RangeContext& context, int);     // all values of the dtype
Interval RangeOfPlaces(const RangeContext& context, int);   // indices along "axis" of x
// Counts from `low` to `high`, which is infinite if unknown; limited to what the dtype represents.
Interval Counts(double low, double high, DType dtype);
Interval RangeOfProducts(const RangeContext& context,
                         int);  // "x" times rows of "weight", plus bias
template <double (*kFunction)(double)>
Interval RangeRising(const RangeContext& context, int) {
  Interval x = context.in("x");
  return {kFunction(x.low), kFunction(x.high)};
}

}  // namespace mlc
