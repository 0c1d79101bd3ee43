#include "lib/ops/value_range.h"

#include <unordered_map>

#include "lib/ir/builder.h"

namespace mlc {

namespace {

constexpr int kMostSteps = 8;
constexpr size_t kMostValues = 256;

// Calls `interval_of(operand)` for each operand of the operation that defines the value.
template <class F>
Interval FromOperands(const Value& value, F&& interval_of) {
  const Operation& op = *value.def;
  RangeContext::Intervals intervals(op.args().size());
  for (size_t p = 0; p < intervals.size(); ++p)
    for (const Operand& operand : op.args()[p]) intervals[p].push_back(interval_of(operand));
  return RangeOf(RangeContext(op, std::move(intervals)), value.index);
}

Interval OfSizes(const std::vector<Dim>& sizes, const Symbols& symbols) {
  std::optional<Interval> joined;
  for (const Dim& size : sizes) {
    Dim::Range range = size.Bounds(symbols);
    Interval own = {static_cast<double>(range.low), static_cast<double>(range.high)};
    joined = joined ? Join(*joined, own) : own;
  }
  return *joined;
}

class Finder {
 public:
  Interval Of(const Value& value, int steps) {
    if (value.is_constant()) return IntervalOf(value.constant());
    Interval any = IntervalOf(value.type.dtype);
    const Operation* op = value.def;
    if (op && value.elements && !value.elements->empty())
      return OfSizes(*value.elements, op->block->function->symbols);
    if (!op || !op->def->range || steps == 0) return any;
    if (auto it = found_.find(&value); it != found_.end()) return it->second;
    if (found_.size() >= kMostValues) return any;
    return found_[&value] = FromOperands(value, [&](const Operand& operand) {
             return operand.value ? Of(*operand.value, steps - 1) : IntervalOf(operand.constant());
           });
  }

 private:
  std::unordered_map<const Value*, Interval> found_;
};

}  // namespace

Interval FindInterval(const Value& value) { return Finder().Of(value, kMostSteps); }

Interval IntervalWhen(const Value& value, Interval floats) {
  if (!value.def || !value.def->def->range) return IntervalOf(value.type.dtype);
  return FromOperands(value, [&](const Operand& operand) {
    DType dtype = operand.type().dtype;
    return IsFloat(dtype) ? floats : IntervalOf(dtype);
  });
}

}  // namespace mlc
