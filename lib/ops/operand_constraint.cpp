#include "lib/ops/operand_constraint.h"

#include <algorithm>
#include <cmath>

namespace mlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

OperandConstraint MovedTo(OperandConstraint constraint, const Shape& before, const Shape& after) {
  if (constraint.parts.empty()) return constraint;
  if (!before.empty() && !after.empty() && before.back() == after.back()) return constraint;
  if (before.empty() && constraint.parts.size() == 1) {
    constraint.low = constraint.parts[0].first;
    constraint.high = constraint.parts[0].second;
  }
  constraint.parts.clear();
  return constraint;
}

}  // namespace

OperandConstraint OperandConstraint::Bounded(double low, double high, std::string why) {
  return {.low = low, .high = std::max(low, high), .why = std::move(why)};
}

OperandConstraint OperandConstraint::Soft(double low, double high, std::string why) {
  return {.soft_low = low, .soft_high = high, .why = std::move(why)};
}

OperandConstraint OperandConstraint::Opaque() { return {.opaque = true}; }

OperandConstraint Meet(OperandConstraint a, const OperandConstraint& b) {
  bool either = a.branch && a.branch == b.branch;
  double low = either ? std::min(a.low, b.low) : std::max(a.low, b.low);
  double high = either ? std::max(a.high, b.high) : std::min(a.high, b.high);
  if (b.bounded() && (!a.bounded() || low != a.low || high != a.high)) a.why = b.why;
  if (low <= high) {
    a.low = low;
    a.high = high;
  }
  a.soft_low = std::min(a.soft_low, b.soft_low);
  a.soft_high = std::max(a.soft_high, b.soft_high);
  if (a.parts.empty()) a.parts = b.parts;
  if (a.scale == 0) {
    a.center = b.center;
    a.scale = b.scale;
  }
  a.mask = a.mask || b.mask;
  a.opaque = a.opaque || b.opaque;
  if (a.valid < 0) a.valid = b.valid;
  if (a.branch != b.branch) a.branch = nullptr;
  if (a.why.empty()) a.why = b.why;
  return a;
}

OperandConstraint ConstraintContext::Moved() const {
  return MovedTo(Asked(), value.type.shape, op.result()->type.shape);
}

OperandConstraint ConstraintContext::MovedFromAll() const {
  OperandConstraint constraint = Asked();
  for (size_t r = 1; r < op.results.size(); ++r)
    constraint = Meet(std::move(constraint), Of(*op.results[r]));
  return MovedTo(std::move(constraint), value.type.shape, op.result()->type.shape);
}

std::optional<Interval> ConstraintContext::Known(std::string_view name) const {
  return op.has(name) ? walk_.known(op.arg(name)[0]) : std::nullopt;
}

double ConstraintContext::Elements() const {
  double n = 1;
  for (const Dim& dim : value.type.shape) n = std::max(n, Size(dim));
  return n;
}

std::string Quoted(const Operation& op) {
  bool named = !op.name.empty() || op.results.empty();
  return fmt::format("{} \"{}\"", op.def->name, named ? op.name : op.result()->name);
}

OperandConstraint ConstraintOfResults(const ConstraintContext& context) {
  const OpDef& def = *context.op.def;
  for (const ConstraintRule& rule : def.constraints)
    if (rule.constraint && (rule.param.empty() || rule.param == context.param))
      return rule.constraint(context);
  if (def.moves != Moves::kNone && context.param == "x") return ResultConstraint(context);
  return context.is_float() ? OperandConstraint() : OperandConstraint::Opaque();
}

OperandConstraint ResultConstraint(const ConstraintContext& context) {
  return context.MovedFromAll();
}

OperandConstraint Share(OperandConstraint constraint, double n) {
  OperandConstraint part;
  part.opaque = constraint.opaque || constraint.bounded();
  part.branch = constraint.branch;
  part.why = constraint.why;
  if (constraint.high < kInfinity)
    part.high = constraint.high >= 0 ? std::floor(constraint.high / n) : constraint.high;
  if (constraint.low > -kInfinity)
    part.low = constraint.low <= 0 ? constraint.low / n : std::min(constraint.low, part.high);
  return part;
}

OperandConstraint Through(OperandConstraint constraint, double factor, double offset) {
  if (factor == 0) return {};
  auto map = [&](double& low, double& high) {
    low = (low - offset) / factor + 0.0;  // avoids -0
    high = (high - offset) / factor + 0.0;
    if (factor < 0) std::swap(low, high);
  };
  map(constraint.low, constraint.high);
  for (auto& [low, high] : constraint.parts) map(low, high);
  if (constraint.soft_low <= constraint.soft_high) map(constraint.soft_low, constraint.soft_high);
  // A small factor or a large offset indicates the scale of the data: 1/255, or the mean of an
  // image.
  double center = (constraint.center - offset) / factor,
         scale = std::max(constraint.scale, 1.0) / std::fabs(factor);
  bool says = constraint.scale > 0 || scale >= 16 || std::fabs(center) >= 16;
  constraint.center = says ? center : 0;
  constraint.scale = says ? scale : 0;
  return constraint;
}

OperandConstraint Clamped(const ConstraintContext& context, OperandConstraint constraint,
                          double low, double high) {
  constexpr double kHuge = 1e9;
  bool integers = !IsFloat(context.op.result()->type.dtype);
  bool has_low = low > -kHuge, has_high = high < kHuge;
  double margin = integers ? 1 : has_low && has_high ? (high - low) / 16 : 1;
  if (has_low && constraint.low <= low) constraint.low = -kInfinity;
  if (has_high && constraint.high >= high) constraint.high = kInfinity;
  if (has_low) constraint.soft_low = std::min(constraint.soft_low, low - margin);
  if (has_high) constraint.soft_high = std::max(constraint.soft_high, high + margin);
  if (has_low && !has_high) constraint.soft_high = std::max(constraint.soft_high, low + margin);
  if (has_high && !has_low) constraint.soft_low = std::min(constraint.soft_low, high - margin);
  if (constraint.why.empty() && (has_low || has_high))
    constraint.why = fmt::format("bounds of {}", Quoted(context.op));
  return constraint;
}

OperandConstraint ConstraintOfSums(const ConstraintContext& context) {
  const OperandConstraint& constraint = context.Asked();
  if (!constraint.bounded())
    return constraint.opaque ? OperandConstraint::Opaque() : OperandConstraint();
  double n = context.Elements();
  OperandConstraint part =
      OperandConstraint::Bounded(std::min(constraint.low, 0.0) / n,
                                 std::max(1.0, std::floor(constraint.high / n)), constraint.why);
  part.low = std::max(part.low, 0.0);
  return part;
}

OperandConstraint ConstraintOfCounts(const ConstraintContext& context) {
  bool start = context.param == "start";
  return OperandConstraint::Bounded(start ? 0 : 1, start ? 0 : kFew,
                                    fmt::format("{} of {}", context.param, Quoted(context.op)));
}

}  // namespace mlc
