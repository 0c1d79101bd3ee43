#include "lib/ops/range_rules.h"

#include "lib/ir/program.h"

namespace mlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostRead = 65536;

double Times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

// Infinities of opposite sign sum to NaN; the result is then unbounded.
Interval Checked(double low, double high) {
  return {std::isnan(low) ? -kInfinity : low, std::isnan(high) ? kInfinity : high};
}

double Rounded(double value, DType dtype) {
  if (std::isinf(value)) return value;
  std::byte element[sizeof(double)];
  auto* bytes = reinterpret_cast<std::byte*>(&value);
  ConvertElements(DType::kFp64, bytes, dtype, element, 1);
  ConvertElements(dtype, element, DType::kFp64, bytes, 1);
  return value;
}

}  // namespace

Interval operator+(Interval a, Interval b) { return Checked(a.low + b.low, a.high + b.high); }
Interval operator-(Interval a, Interval b) { return Checked(a.low - b.high, a.high - b.low); }

Interval operator*(Interval a, Interval b) {
  auto [low, high] = std::minmax(
      {Times(a.low, b.low), Times(a.low, b.high), Times(a.high, b.low), Times(a.high, b.high)});
  return {low, high};
}

Interval RoundedSum(Interval a, Interval b) {
  Interval sum = a + b;
  double error = 0;
  for (double end : {a.low, a.high, b.low, b.high})
    if (std::isfinite(end)) error = std::max(error, std::fabs(end) * 1e-12);
  return {sum.low - error, sum.high + error};
}

Interval Reciprocal(Interval x) {
  if (x.low > 0 || x.high < 0) return {1 / x.high, 1 / x.low};
  if (x.low == 0) return {1 / x.high, kInfinity};
  return {};
}

Interval Magnitude(Interval x) {
  double low = std::fabs(x.low), high = std::fabs(x.high);
  return {x.Contains(0) ? 0 : std::min(low, high), std::max(low, high)};
}

Interval Square(Interval x) {
  Interval m = Magnitude(x);
  return {m.low * m.low, m.high * m.high};
}

Interval Sum(Interval x, double least, double most) {
  Interval sum = {Times(x.low, x.low < 0 ? most : least), Times(x.high, x.high > 0 ? most : least)};
  double size = std::max(std::fabs(sum.low), std::fabs(sum.high));
  if (!std::isfinite(size) || most <= 1) return sum;
  double error = size * most * 0x1p-52;
  return {x.low >= 0 ? std::max(sum.low - error, 0.0) : sum.low - error,
          x.high <= 0 ? std::min(sum.high + error, 0.0) : sum.high + error};
}

Interval IntervalOf(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (!IsInteger(dtype)) return {};
  int bits = Bits(dtype);
  return IsSigned(dtype) ? Interval{-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1}
                         : Interval{0, std::ldexp(1, bits) - 1};
}

Interval IntervalOf(const Tensor& constant) {
  if (constant.dtype() == DType::kString) return {};
  if (constant.size() == 0 || constant.size() > kMostRead) return IntervalOf(constant.dtype());
  Tensor::Range range = constant.range();
  return range.low <= range.high ? Interval{range.low, range.high} : Interval();
}

RangeContext::RangeContext(const Operation& op, Intervals intervals)
    : OpContext(*op.def, op.args(), &op), intervals_(std::move(intervals)) {}

const Type& RangeContext::result_type(int result) const {
  return operation() ? operation()->result(result)->type : result_types_[result];
}

Interval RangeContext::in(std::string_view name, int i) const {
  if (i >= count(name)) {
    Tensor fallback = value(name, i);
    return fallback ? IntervalOf(fallback) : Interval();
  }
  Interval known = intervals_[def_.Find(name)][i];
  Interval type = IntervalOf(dtype(name, i));
  return {std::max(known.low, type.low), std::min(known.high, type.high)};
}

Interval RangeContext::all(std::string_view name) const {
  Interval joined = in(name, 0);
  for (int i = 1; i < count(name); ++i) joined = Join(joined, in(name, i));
  return joined;
}

std::optional<double> RangeContext::Number(std::string_view name) const {
  Tensor known = value(name);
  if (!known || known.size() != 1 || known.dtype() == DType::kString) return std::nullopt;
  return known.Double(0);
}

bool RangeContext::SameOperand(std::string_view a, std::string_view b) const {
  const Operand *first = operand(a, 0), *second = operand(b, 0);
  return first && second && first->value && first->value == second->value;
}

double RangeContext::Size(std::string_view name, int axis) const {
  const Dim& dim = shape(name)[axis];
  return dim.is_constant() ? static_cast<double>(dim.constant()) : kInfinity;
}

double RangeContext::Reduced(std::string_view name) const {
  Dim whole = Product(shape(name)), left = Product(result_type(0).shape);
  if (whole == left) return 1;
  if (!whole.is_constant() || !left.is_constant() || left == Dim(0)) return kInfinity;
  return static_cast<double>(whole.constant() / left.constant());
}

Interval RangeOf(const RangeContext& context, int result) {
  const Type& type = context.result_type(result);
  if (!type.is_tensor() || type.dtype == DType::kString) return {};
  Interval whole = IntervalOf(type.dtype);
  if (!context.def().range) return whole;
  Interval range = context.def().range(context, result);
  if (std::isnan(range.low)) range.low = -kInfinity;
  if (std::isnan(range.high)) range.high = kInfinity;
  if (IsFloat(type.dtype)) return {Rounded(range.low, type.dtype), Rounded(range.high, type.dtype)};
  range = {std::ceil(range.low), std::floor(range.high)};
  return whole.Contains(range.low) && whole.Contains(range.high) ? range : whole;
}

Interval RangeOfX(const RangeContext& context, int) { return context.in("x"); }
Interval RangeOfXOrZero(const RangeContext& context, int) { return Join(context.in("x"), {0, 0}); }
Interval RangeOfValues(const RangeContext& context, int) { return context.all("values"); }
Interval RangeOfType(const RangeContext& context, int result) {
  return IntervalOf(context.out_dtype(result));
}

Interval Counts(double low, double high, DType dtype) {
  return {low, std::isinf(high) ? IntervalOf(dtype).high : high};
}

Interval RangeOfPlaces(const RangeContext& context, int result) {
  int rank = context.rank("x");
  if (rank == 0) return {0, 0};
  std::optional<double> axis = context.Number("axis");
  double size =
      axis ? context.Size("x", OpContext::Axis(static_cast<int64_t>(*axis), rank)) : kInfinity;
  return Counts(0, size - 1, context.out_dtype(result));
}

Interval RangeOfProducts(const RangeContext& context, int) {
  double count = 1;
  for (int d = 1; d < context.rank("weight"); ++d) count *= context.Size("weight", d);
  Interval sum = Sum(context.in("x") * context.in("weight"), count);
  return context.def().Find("bias") >= 0 && (context.has("bias") || context.value("bias"))
             ? RoundedSum(sum, context.in("bias"))
             : sum;
}

}  // namespace mlc
