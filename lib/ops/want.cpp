#include "lib/ops/want.h"

#include <algorithm>
#include <cmath>

namespace mlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Want MovedTo(Want want, const Shape& before, const Shape& after) {
  if (want.parts.empty()) return want;
  if (!before.empty() && !after.empty() && before.back() == after.back()) return want;
  if (before.empty() && want.parts.size() == 1) {
    want.low = want.parts[0].first;
    want.high = want.parts[0].second;
  }
  want.parts.clear();
  return want;
}

}  // namespace

Want Want::Bounded(double low, double high, std::string why) {
  Want want;
  want.low = low;
  want.high = std::max(low, high);
  want.why = std::move(why);
  return want;
}

Want Want::Soft(double low, double high, std::string why) {
  Want want;
  want.soft_low = low;
  want.soft_high = high;
  want.why = std::move(why);
  return want;
}

Want Want::Opaque() {
  Want want;
  want.opaque = true;
  return want;
}

Want Meet(Want a, const Want& b) {
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

Want WantContext::Moved() const {
  return MovedTo(Asked(), value.type.shape, op.result()->type.shape);
}

Want WantContext::MovedFromAll() const {
  Want want = Asked();
  for (size_t r = 1; r < op.results.size(); ++r) want = Meet(std::move(want), Of(*op.results[r]));
  return MovedTo(std::move(want), value.type.shape, op.result()->type.shape);
}

std::optional<Interval> WantContext::Known(std::string_view name) const {
  return op.has(name) ? walk_.known(op.arg(name)[0]) : std::nullopt;
}

double WantContext::Elements() const {
  double n = 1;
  for (const Dim& dim : value.type.shape) n = std::max(n, Size(dim));
  return n;
}

std::string Quoted(const Operation& op) {
  bool named = !op.name.empty() || op.results.empty();
  return fmt::format("{} \"{}\"", op.def->name, named ? op.name : op.result()->name);
}

Want AskedOf(const WantContext& context) {
  const OpDef& def = *context.op.def;
  for (const WantRule& rule : def.wants)
    if (rule.want && (rule.param.empty() || rule.param == context.param)) return rule.want(context);
  if (def.moves != Moves::kNone && context.param == "x") return WantSame(context);
  return context.is_float() ? Want() : Want::Opaque();
}

Want WantSame(const WantContext& context) { return context.MovedFromAll(); }

Want Share(Want want, double n) {
  Want part;
  part.opaque = want.opaque || want.bounded();
  part.branch = want.branch;
  part.why = want.why;
  if (want.high < kInfinity) part.high = want.high >= 0 ? std::floor(want.high / n) : want.high;
  if (want.low > -kInfinity)
    part.low = want.low <= 0 ? want.low / n : std::min(want.low, part.high);
  return part;
}

Want Through(Want want, double factor, double offset) {
  if (factor == 0) return {};
  auto map = [&](double& low, double& high) {
    low = (low - offset) / factor + 0.0;  // avoids -0
    high = (high - offset) / factor + 0.0;
    if (factor < 0) std::swap(low, high);
  };
  map(want.low, want.high);
  for (auto& [low, high] : want.parts) map(low, high);
  if (want.soft_low <= want.soft_high) map(want.soft_low, want.soft_high);
  // A small factor or a large offset indicates the scale of the data: 1/255, or the mean of an
  // image.
  double center = (want.center - offset) / factor,
         scale = std::max(want.scale, 1.0) / std::fabs(factor);
  bool says = want.scale > 0 || scale >= 16 || std::fabs(center) >= 16;
  want.center = says ? center : 0;
  want.scale = says ? scale : 0;
  return want;
}

Want Clamped(const WantContext& context, Want want, double low, double high) {
  constexpr double kHuge = 1e9;
  bool integers = !IsFloat(context.op.result()->type.dtype);
  bool has_low = low > -kHuge, has_high = high < kHuge;
  double margin = integers ? 1 : has_low && has_high ? (high - low) / 16 : 1;
  if (has_low && want.low <= low) want.low = -kInfinity;
  if (has_high && want.high >= high) want.high = kInfinity;
  if (has_low) want.soft_low = std::min(want.soft_low, low - margin);
  if (has_high) want.soft_high = std::max(want.soft_high, high + margin);
  if (has_low && !has_high) want.soft_high = std::max(want.soft_high, low + margin);
  if (has_high && !has_low) want.soft_low = std::min(want.soft_low, high - margin);
  if (want.why.empty() && (has_low || has_high))
    want.why = fmt::format("bounds of {}", Quoted(context.op));
  return want;
}

Want WantOfSums(const WantContext& context) {
  const Want& want = context.Asked();
  if (!want.bounded()) return want.opaque ? Want::Opaque() : Want();
  double n = context.Elements();
  Want part = Want::Bounded(std::min(want.low, 0.0) / n, std::max(1.0, std::floor(want.high / n)),
                            want.why);
  part.low = std::max(part.low, 0.0);
  return part;
}

Want WantFew(const WantContext& context) {
  bool start = context.param == "start";
  return Want::Bounded(start ? 0 : 1, start ? 0 : kFew,
                       fmt::format("{} of {}", context.param, Quoted(context.op)));
}

}  // namespace mlc
