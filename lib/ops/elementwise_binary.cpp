#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

template <class W>
inline constexpr bool kIsDouble = std::is_same_v<W, double>;

constexpr auto kAdd = []<class W>(W a, W b) { return W(Wrapping<W>(a) + Wrapping<W>(b)); };
constexpr auto kSub = []<class W>(W a, W b) { return W(Wrapping<W>(a) - Wrapping<W>(b)); };
constexpr auto kMul = []<class W>(W a, W b) { return W(Wrapping<W>(a) * Wrapping<W>(b)); };

// Integer quotients: zero for a zero divisor; INT64_MIN / -1 wraps.
template <class W>
W Truncated(W a, W b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<W>)
    if (b == -1) return W(0 - uint64_t(a));
  return a / b;
}
template <class W>
W Remainder(W a, W b) {  // of floor division
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<W>) {
    if (b == -1) return 0;
    W rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    return a % b;
  }
}
// The remainder has the sign of the divisor, as in Python.
double FloatRemainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
// The floor of the exact quotient; the rounded a / b may be the next integer.
double FloorQuotient(double a, double b) {
  if (b == 0) return a / b;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  return std::isnan(quotient) ? quotient : std::nearbyint(quotient);
}

constexpr auto kRealDiv = []<class W>(W a, W b) {
  if constexpr (kIsDouble<W>)
    return a / b;
  else
    return Truncated(a, b);
};
constexpr auto kFloorDiv = []<class W>(W a, W b) {
  if constexpr (kIsDouble<W>) {
    return FloorQuotient(a, b);
  } else {
    W quotient = Truncated(a, b);
    if constexpr (std::is_signed_v<W>)
      if (b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0)) return quotient - 1;
    return quotient;
  }
};
constexpr auto kMod = []<class W>(W a, W b) {
  if constexpr (kIsDouble<W>)
    return FloatRemainder(a, b);
  else
    return Remainder(a, b);
};
constexpr auto kPow = []<class W>(W a, W b) -> W {
  if constexpr (kIsDouble<W>) {
    return std::pow(a, b);
  } else {
    if constexpr (std::is_signed_v<W>)
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;  // 1 / a^-b, truncated
    uint64_t power = 1, base = uint64_t(a);
    for (uint64_t exponent = uint64_t(b); exponent; exponent >>= 1, base *= base)
      if (exponent & 1) power *= base;
    return W(power);
  }
};
constexpr auto kMaximum = [](auto a, auto b) { return MaximumOf(a, b); };
constexpr auto kMinimum = [](auto a, auto b) { return MinimumOf(a, b); };

constexpr auto kAnd = [](auto a, auto b) { return a != 0 && b != 0; };
constexpr auto kOr = [](auto a, auto b) { return a != 0 || b != 0; };
constexpr auto kXor = [](auto a, auto b) { return (a != 0) != (b != 0); };

// The loop of a binary operator over widened elements. MapPairs reads and writes the elements of
// each dtype, so that one loop serves all dtypes of a wide type.
template <class W, class V>
using Loop = void (*)(const W* a, const W* b, V* to, int64_t n);
template <auto kF, class W, class V>
void EachPair(const W* a, const W* b, V* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = kF(a[i], b[i]);
}

template <class T, class R, class V>
Tensor MapPairs(const Tensor& x, const Tensor& y, const Dims& dims, Loop<Wide<T>, V> loop) {
  constexpr int64_t kMost = 256;
  Wide<T> left[kMost], right[kMost];
  V results[kMost];
  Out<R> out(dims);
  Pin<T> a = x.data<T>(), b = y.data<T>();
  R* to = out.data.data();
  int64_t n = 0;
  auto flush = [&] {
    loop(left, right, results, n);
    for (int64_t k = 0; k < n; ++k) *to++ = Narrow<R>(results[k]);
    n = 0;
  };
  Walk<2>(dims, {BroadcastStrides(x.dims(), dims), BroadcastStrides(y.dims(), dims)},
          [&](int64_t i, int64_t j) {
            left[n] = Widen(a[i]);
            right[n] = Widen(b[j]);
            if (++n == kMost) flush();
          });
  flush();
  return out.tensor;
}

// A binary operation whose result has the dtype of the operands.
template <auto kF>
void Eval(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    using W = Wide<T>;
    return MapPairs<T, T, W>(x, y, context.out_dims(), EachPair<kF, W, W>);
  }));
}
// A binary operation whose result is bool.
template <auto kF>
void EvalTest(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    return MapPairs<T, bool, bool>(x, y, context.out_dims(), EachPair<kF, Wide<T>, bool>);
  }));
}

struct DimContext {
  const Symbols& symbols;
  bool is_float;
};
// The operation applied to symbolic sizes; nullopt if the result is not known exactly.
using OnDims = std::optional<Dim> (*)(const Dim& a, const Dim& b, const DimContext& of);

bool IsPositive(const Dim& dim, const DimContext& of) { return dim.Bounds(of.symbols).low >= 1; }
bool IsNatural(const Dim& dim, const DimContext& of) { return dim.Bounds(of.symbols).low >= 0; }

std::optional<Dim> AddDims(const Dim& a, const Dim& b, const DimContext&) { return a + b; }
std::optional<Dim> SubDims(const Dim& a, const Dim& b, const DimContext&) { return a - b; }
std::optional<Dim> MulDims(const Dim& a, const Dim& b, const DimContext&) { return a * b; }
std::optional<Dim> MaximumDims(const Dim& a, const Dim& b, const DimContext&) { return Max(a, b); }
std::optional<Dim> MinimumDims(const Dim& a, const Dim& b, const DimContext&) {
  return 0 - Max(0 - a, 0 - b);
}
std::optional<Dim> FloorDivDims(const Dim& a, const Dim& b, const DimContext& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  return FloorDiv(a, b);
}
std::optional<Dim> ModDims(const Dim& a, const Dim& b, const DimContext& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  return a - b * FloorDiv(a, b);
}
std::optional<Dim> RealDivDims(const Dim& a, const Dim& b, const DimContext& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  if (std::optional<Dim> quotient = DivideExactly(a, b)) return quotient;
  if (of.is_float || !IsNatural(a, of)) return std::nullopt;
  return FloorDiv(a, b);  // truncation equals floor for natural numbers
}

// Comparisons of sizes: 1 or 0 if the outcome is the same for all values of their symbols.
std::optional<Dim> Decide(bool always, bool never) {
  if (always) return Dim(1);
  if (never) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> EqualDims(const Dim& a, const Dim& b, const DimContext& of) {
  Dim::Range range = (a - b).Bounds(of.symbols);
  return Decide(a == b, range.low > 0 || range.high < 0);
}
std::optional<Dim> LessDims(const Dim& a, const Dim& b, const DimContext& of) {
  Dim::Range range = (a - b).Bounds(of.symbols);
  return Decide(range.high < 0, range.low >= 0);
}
template <OnDims kOnDims>
std::optional<Dim> NotDims(const Dim& a, const Dim& b, const DimContext& of) {
  std::optional<Dim> truth = kOnDims(a, b, of);
  if (truth) return 1 - *truth;
  return std::nullopt;
}
template <OnDims kOnDims>
std::optional<Dim> SwappedDims(const Dim& a, const Dim& b, const DimContext& of) {
  return kOnDims(b, a, of);
}

// Sets the elements of the last result if those of x and y are known.
void InferElements(InferContext& context, OnDims on_dims) {
  if (context.results.back().rank() > 1) return;
  if (context.value("x") && context.value("y"))
    return;  // the value already determines the elements
  auto a = WholeElements(context, "x"), b = WholeElements(context, "y");
  if (!a || !b || a->empty() || b->empty()) return;
  // Very large numbers are sentinels (INT64_MAX for "to the end"), whose arithmetic would overflow.
  auto is_far = [](const Dim& dim) {
    constexpr int64_t kFar = int64_t{1} << 31;
    return dim.is_constant() && (dim.constant() > kFar || dim.constant() < -kFar);
  };
  if (std::ranges::any_of(*a, is_far) || std::ranges::any_of(*b, is_far)) return;
  DimContext of{context.symbols(), IsFloat(context.dtype("x"))};
  std::vector<Dim> elements;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    std::optional<Dim> element =
        on_dims((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i], of);
    if (!element) return;
    elements.push_back(std::move(*element));
  }
  context.Elements(std::move(elements));
}

template <OnDims kOnDims = nullptr>
void Infer(InferContext& context) {
  DType dtype = SharedDType(context, "x", "y");
  context.Result(dtype, BroadcastShapes(context, context.shape("x"), context.shape("y")));
  if constexpr (kOnDims != nullptr)
    if (dtype != DType::kBool) InferElements(context, kOnDims);
}

template <OnDims kOnDims = nullptr>
void InferTest(InferContext& context) {
  SharedDType(context, "x", "y");
  context.Result(DType::kBool, BroadcastShapes(context, context.shape("x"), context.shape("y")));
  if constexpr (kOnDims != nullptr) InferElements(context, kOnDims);
}

constexpr std::string_view kNumbers = "x:T y:T | T=fp16/fp32/int32";

Interval RangeAdd(const RangeContext& context, int) { return context.in("x") + context.in("y"); }
Interval RangeSub(const RangeContext& context, int) { return context.in("x") - context.in("y"); }
Interval RangeMul(const RangeContext& context, int) {
  return context.SameOperand("x", "y") ? Square(context.in("x"))
                                       : context.in("x") * context.in("y");
}
// Integer results are truncated, and 0 if the divisor is 0.
template <double (*kRound)(double)>
Interval RangeDivided(const RangeContext& context, int) {
  Interval x = context.in("x"), y = context.in("y");
  if (IsFloat(context.dtype("x"))) {
    Interval quotient = x * Reciprocal(y);
    if (!y.Contains(0)) {
      auto [low, high] =
          std::minmax({x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high});
      if (!std::isnan(low + high)) quotient = {low, high};
    }
    return {kRound(quotient.low), kRound(quotient.high)};
  }
  double size = std::max(std::fabs(x.low), std::fabs(x.high));
  if (y.Contains(0)) return {x.low >= 0 && y.low >= 0 ? 0 : -size, size};
  Interval quotient = x * Reciprocal(y);
  return {std::floor(quotient.low), std::ceil(quotient.high)};
}
double AsItIs(double x) { return x; }
double RoundedDown(double x) { return std::floor(x); }
Interval RangeMod(const RangeContext& context, int) {
  Interval y = context.in("y");
  return {std::min(y.low, 0.0), std::max(y.high, 0.0)};
}
Interval RangePow(const RangeContext& context, int) {
  Interval x = context.in("x"), y = context.in("y");
  bool even = y.low == y.high && std::fmod(y.low, 2) == 0;
  if (even) x = Magnitude(x);
  if (x.low < 0 || (!IsFloat(context.dtype("x")) && y.low < 0)) return {};
  auto [low, high] = std::minmax({std::pow(x.low, y.low), std::pow(x.low, y.high),
                                  std::pow(x.high, y.low), std::pow(x.high, y.high)});
  return {low, high};
}
Interval RangeMaximum(const RangeContext& context, int) {
  Interval x = context.in("x"), y = context.in("y");
  return {std::max(x.low, y.low), std::max(x.high, y.high)};
}
Interval RangeMinimum(const RangeContext& context, int) {
  Interval x = context.in("x"), y = context.in("y");
  return {std::min(x.low, y.low), std::min(x.high, y.high)};
}

template <auto kF, OnDims kOnDims = nullptr>
constexpr OpRow Arithmetic(OpRow row) {
  row.signatures = {{{kIos15, kNumbers}}};
  row.infer = Infer<kOnDims>;
  row.eval = Eval<kF>;
  row.layout = {.data = {"x", "y"}};
  return row;
}
template <auto kF, OnDims kOnDims>
constexpr OpRow Comparison(OpRow row) {
  row.signatures = {{{kIos15, kNumbers}}};
  row.infer = InferTest<kOnDims>;
  row.eval = EvalTest<kF>;
  row.layout = {.data = {"x", "y"}};
  row.fp16.kind = kAsksWhole;
  row.range = RangeOfType;
  row.constraints = {{{"", WantOfComparison}}};
  return row;
}
template <auto kF>
constexpr OpRow Logic(OpRow row) {
  row.signatures = {{{kIos15, "x:T y:T | T=bool"}}};
  row.infer = InferTest<>;
  row.eval = EvalTest<kF>;
  row.layout = {.data = {"x", "y"}};
  row.range = RangeOfType;
  row.constraints = {{{"", WantOfLogic}}};
  return row;
}

constexpr OpRow kElementwiseBinaryRows[] = {
    Arithmetic<kAdd, AddDims>(
        {.name = "add",
         .doc = "x + y",
         .neutral = {{{"y", 0, "x"}, {"x", 0, "y"}}},
         .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kKeepsWhole | kKeepsSums},
         .eight_bit = EightBit::kJoin,
         .range = RangeAdd,
         .constraints = {{{"", WantOfAdd}}}}),
    Comparison<std::equal_to<>{}, EqualDims>(
        {.name = "equal", .doc = "x == y", .fp16 = {.carries = kSteps}}),
    Arithmetic<kFloorDiv, FloorDivDims>({.name = "floor_div",
                                         .doc = "x / y, rounded toward negative infinity",
                                         .fp16 = {.needs = kSteps, .kind = kAsksWhole},
                                         .range = RangeDivided<RoundedDown>,
                                         .constraints = {{{"", WantOfQuotient}}}}),
    Comparison<std::greater<>{}, SwappedDims<LessDims>>({.name = "greater", .doc = "x > y"}),
    Comparison<std::greater_equal<>{}, NotDims<LessDims>>(
        {.name = "greater_equal", .doc = "x >= y"}),
    Comparison<std::less<>{}, LessDims>({.name = "less", .doc = "x < y"}),
    Comparison<std::less_equal<>{}, NotDims<SwappedDims<LessDims>>>(
        {.name = "less_equal", .doc = "x <= y"}),
    Logic<kAnd>({.name = "logical_and", .doc = "logical and"}),
    Logic<kOr>({.name = "logical_or", .doc = "logical or"}),
    Logic<kXor>({.name = "logical_xor", .doc = "logical exclusive or"}),
    Arithmetic<kMaximum, MaximumDims>(
        {.name = "maximum",
         .doc = "maximum of x and y; NaN if either is NaN",
         .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps,
                  .kind = kKeepsWhole,
                  .bounds = {"x", "y"}},
         .range = RangeMaximum,
         .constraints = {{{"", WantOfExtremum}}}}),
    Arithmetic<kMinimum, MinimumDims>(
        {.name = "minimum",
         .doc = "minimum of x and y; NaN if either is NaN",
         .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps,
                  .kind = kKeepsWhole,
                  .bounds = {"x", "y"}},
         .range = RangeMinimum,
         .constraints = {{{"", WantOfExtremum}}}}),
    Arithmetic<kMod, ModDims>({.name = "mod",
                               .doc = "remainder of floor_div, with the sign of y",
                               .fp16 = {.needs = kSteps, .kind = kAsksWhole},
                               .range = RangeMod,
                               .constraints = {{{"", WantOfQuotient}}}}),
    Arithmetic<kMul, MulDims>({.name = "mul",
                               .doc = "x * y",
                               .neutral = {{{"y", 1, "x"}, {"x", 1, "y"}}},
                               .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kProduct},
                               .range = RangeMul,
                               .constraints = {{{"", WantOfMul}}}}),
    Comparison<std::not_equal_to<>{}, NotDims<EqualDims>>({.name = "not_equal", .doc = "x != y"}),
    Arithmetic<kPow>({.name = "pow",
                      .doc = "x raised to the power y",
                      .neutral = {{{"y", 1, "x"}}},
                      .fp16 = {.carries = kPlaces, .kind = kRough},
                      .range = RangePow,
                      .constraints = {{{"x", WantOfBase}, {"y", WantOfExponent}}}}),
    Arithmetic<kRealDiv, RealDivDims>(
        {.name = "real_div",
         .doc = "x / y; integer results are truncated",
         .neutral = {{{"y", 1, "x"}}},
         .fp16 = {.carries = kPlaces | kSteps, .kind = kProduct | kRough},
         .range = RangeDivided<AsItIs>,
         .constraints = {{{"", WantOfQuotient}}}}),
    Arithmetic<kSub, SubDims>(
        {.name = "sub",
         .doc = "x - y",
         .neutral = {{{"y", 0, "x"}}},
         .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kKeepsWhole | kKeepsSums},
         .range = RangeSub,
         .constraints = {{{"", WantOfSub}}}}),
};

}  // namespace

std::span<const OpRow> ElementwiseBinaryRows() { return kElementwiseBinaryRows; }

}  // namespace mlc
