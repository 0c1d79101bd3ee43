#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/ops/eval.h"
#include "lib/ops/range.h"
#include "lib/ops/row.h"
#include "lib/ops/want.h"

namespace mlc {

namespace {

// Integer arithmetic wraps: it is done on the unsigned type.
template <class W>
inline constexpr bool kIsDouble = std::is_same_v<W, double>;

struct Add {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>)
      return a + b;
    else
      return W(uint64_t(a) + uint64_t(b));
  }
};
struct Sub {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>)
      return a - b;
    else
      return W(uint64_t(a) - uint64_t(b));
  }
};
struct Mul {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>)
      return a * b;
    else
      return W(uint64_t(a) * uint64_t(b));
  }
};

// Integer quotients: zero for a zero divisor, and INT64_MIN / -1 wraps.
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
// The remainder has the divisor's sign, as in Python.
double FloatRemainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
// floor of the exact quotient: a / b may round up to the next integer.
double FloorQuotient(double a, double b) {
  if (b == 0) return a / b;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  return std::isnan(quotient) ? quotient : std::nearbyint(quotient);
}

struct RealDiv {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>)
      return a / b;
    else
      return Truncated(a, b);
  }
};
struct FloorDivide {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>) {
      return FloorQuotient(a, b);
    } else {
      W quotient = Truncated(a, b);
      if constexpr (std::is_signed_v<W>)
        if (b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0)) return quotient - 1;
      return quotient;
    }
  }
};
struct Mod {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (kIsDouble<W>)
      return FloatRemainder(a, b);
    else
      return Remainder(a, b);
  }
};
struct Pow {
  template <class W>
  W operator()(W a, W b) const {
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
  }
};
struct Maximum {
  template <class W>
  W operator()(W a, W b) const {
    return MaximumOf(a, b);
  }
};
struct Minimum {
  template <class W>
  W operator()(W a, W b) const {
    return MinimumOf(a, b);
  }
};

// The loops of an operator over pairs; what differs between element types is how they are read and written, in MapPairs.
template <class W, class V>
using Loop = void (*)(const W* a, const W* b, V* to, int64_t n);
template <class F, class W, class V>
void EachPair(const W* a, const W* b, V* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = F{}(a[i], b[i]);
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

// The result in the type of the operands.
template <class F>
void Eval(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    return MapPairs<T, T, W>(x, y, context.out_dims(), EachPair<F, W, W>);
  }));
}
// The result is a truth value.
template <class F>
void EvalTest(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return MapPairs<T, bool, bool>(x, y, context.out_dims(), EachPair<F, Wide<T>, bool>);
  }));
}
struct And {
  template <class W>
  bool operator()(W a, W b) const {
    return a != 0 && b != 0;
  }
};
struct Or {
  template <class W>
  bool operator()(W a, W b) const {
    return a != 0 || b != 0;
  }
};
struct Xor {
  template <class W>
  bool operator()(W a, W b) const {
    return (a != 0) != (b != 0);
  }
};

// What an operation does to sizes; nothing when that is not known to be exact.
struct OfSizes {
  const Symbols& symbols;
  bool is_float;
};
using OnDims = std::optional<Dim> (*)(const Dim& a, const Dim& b, const OfSizes& of);

bool IsPositive(const Dim& dim, const OfSizes& of) { return dim.Bounds(of.symbols).low >= 1; }
bool IsNatural(const Dim& dim, const OfSizes& of) { return dim.Bounds(of.symbols).low >= 0; }

std::optional<Dim> AddDims(const Dim& a, const Dim& b, const OfSizes&) { return a + b; }
std::optional<Dim> SubDims(const Dim& a, const Dim& b, const OfSizes&) { return a - b; }
std::optional<Dim> MulDims(const Dim& a, const Dim& b, const OfSizes&) { return a * b; }
std::optional<Dim> MaximumDims(const Dim& a, const Dim& b, const OfSizes&) { return Max(a, b); }
std::optional<Dim> MinimumDims(const Dim& a, const Dim& b, const OfSizes&) {
  return 0 - Max(0 - a, 0 - b);
}
std::optional<Dim> FloorDivDims(const Dim& a, const Dim& b, const OfSizes& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  return FloorDiv(a, b);
}
std::optional<Dim> ModDims(const Dim& a, const Dim& b, const OfSizes& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  return a - b * FloorDiv(a, b);
}
std::optional<Dim> RealDivDims(const Dim& a, const Dim& b, const OfSizes& of) {
  if (!IsPositive(b, of)) return std::nullopt;
  if (std::optional<Dim> quotient = DivideExactly(a, b)) return quotient;
  if (of.is_float || !IsNatural(a, of)) return std::nullopt;
  return FloorDiv(a, b);  // truncation, for natural numbers
}

// Comparisons of sizes: 1 or 0 where it is the same for all values of their symbols.
std::optional<Dim> Decide(bool always, bool never) {
  if (always) return Dim(1);
  if (never) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> EqualDims(const Dim& a, const Dim& b, const OfSizes& of) {
  Dim::Range range = (a - b).Bounds(of.symbols);
  return Decide(a == b, range.low > 0 || range.high < 0);
}
std::optional<Dim> LessDims(const Dim& a, const Dim& b, const OfSizes& of) {
  Dim::Range range = (a - b).Bounds(of.symbols);
  return Decide(range.high < 0, range.low >= 0);
}
template <OnDims kOnDims>
std::optional<Dim> NotDims(const Dim& a, const Dim& b, const OfSizes& of) {
  std::optional<Dim> truth = kOnDims(a, b, of);
  if (truth) return 1 - *truth;
  return std::nullopt;
}
template <OnDims kOnDims>
std::optional<Dim> SwappedDims(const Dim& a, const Dim& b, const OfSizes& of) {
  return kOnDims(b, a, of);
}

// Says the elements of the last result where those of x and y are known.
void InferElements(InferContext& context, OnDims on_dims) {
  if (context.results.back().rank() > 1) return;
  if (context.value("x") && context.value("y")) return;  // the value says it
  auto a = WholeElements(context, "x"), b = WholeElements(context, "y");
  if (!a || !b || a->empty() || b->empty()) return;
  // Far out numbers are sentinels (INT64_MAX as "to the end"), whose arithmetic would overflow.
  auto is_far = [](const Dim& dim) {
    constexpr int64_t kFar = int64_t{1} << 31;
    return dim.is_constant() && (dim.constant() > kFar || dim.constant() < -kFar);
  };
  if (std::any_of(a->begin(), a->end(), is_far) || std::any_of(b->begin(), b->end(), is_far))
    return;
  OfSizes of{context.symbols(), IsFloat(context.dtype("x"))};
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
constexpr std::string_view kBools = "x:T y:T | T=bool";

Interval RangeAdd(const RangeContext& context, int) { return context.in("x") + context.in("y"); }
Interval RangeSub(const RangeContext& context, int) { return context.in("x") - context.in("y"); }
Interval RangeMul(const RangeContext& context, int) {
  return context.SameOperand("x", "y") ? Square(context.in("x"))
                                       : context.in("x") * context.in("y");
}
// Integers truncate, and are 0 where the divisor is.
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

constexpr Row kRows[] = {
    {.name = "add",
     .doc = "x + y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<AddDims>,
     .eval = Eval<Add>,
     .layout = {.data = {"x", "y"}},
     .neutral = {{{"y", 0, "x"}, {"x", 0, "y"}}},
     .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kKeepsWhole | kKeepsSums},
     .range = RangeAdd,
     .wants = {{{"", WantOfAdd}}}},
    {.name = "equal",
     .doc = "x == y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<EqualDims>,
     .eval = EvalTest<std::equal_to<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.carries = kSteps, .kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "floor_div",
     .doc = "x / y rounded towards negative infinity",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<FloorDivDims>,
     .eval = Eval<FloorDivide>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.needs = kSteps, .kind = kAsksWhole},
     .range = RangeDivided<RoundedDown>,
     .wants = {{{"", WantOfQuotient}}}},
    {.name = "greater",
     .doc = "x > y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<SwappedDims<LessDims>>,
     .eval = EvalTest<std::greater<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "greater_equal",
     .doc = "x >= y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<NotDims<LessDims>>,
     .eval = EvalTest<std::greater_equal<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "less",
     .doc = "x < y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<LessDims>,
     .eval = EvalTest<std::less<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "less_equal",
     .doc = "x <= y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<NotDims<SwappedDims<LessDims>>>,
     .eval = EvalTest<std::less_equal<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "logical_and",
     .doc = "x and y",
     .forms = {{{kIos15, kBools}}},
     .infer = InferTest<>,
     .eval = EvalTest<And>,
     .layout = {.data = {"x", "y"}},
     .range = RangeOfType,
     .wants = {{{"", WantOfLogic}}}},
    {.name = "logical_or",
     .doc = "x or y",
     .forms = {{{kIos15, kBools}}},
     .infer = InferTest<>,
     .eval = EvalTest<Or>,
     .layout = {.data = {"x", "y"}},
     .range = RangeOfType,
     .wants = {{{"", WantOfLogic}}}},
    {.name = "logical_xor",
     .doc = "x and y differ",
     .forms = {{{kIos15, kBools}}},
     .infer = InferTest<>,
     .eval = EvalTest<Xor>,
     .layout = {.data = {"x", "y"}},
     .range = RangeOfType,
     .wants = {{{"", WantOfLogic}}}},
    {.name = "maximum",
     .doc = "the greater of x and y; NaN when either is",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<MaximumDims>,
     .eval = Eval<Maximum>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps,
              .kind = kKeepsWhole,
              .bounds = {"x", "y"}},
     .range = RangeMaximum,
     .wants = {{{"", WantOfExtremum}}}},
    {.name = "minimum",
     .doc = "the lesser of x and y; NaN when either is",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<MinimumDims>,
     .eval = Eval<Minimum>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps,
              .kind = kKeepsWhole,
              .bounds = {"x", "y"}},
     .range = RangeMinimum,
     .wants = {{{"", WantOfExtremum}}}},
    {.name = "mod",
     .doc = "remainder of floor_div; it has the sign of y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<ModDims>,
     .eval = Eval<Mod>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.needs = kSteps, .kind = kAsksWhole},
     .range = RangeMod,
     .wants = {{{"", WantOfQuotient}}}},
    {.name = "mul",
     .doc = "x * y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<MulDims>,
     .eval = Eval<Mul>,
     .layout = {.data = {"x", "y"}},
     .neutral = {{{"y", 1, "x"}, {"x", 1, "y"}}},
     .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kProduct},
     .range = RangeMul,
     .wants = {{{"", WantOfMul}}}},
    {.name = "not_equal",
     .doc = "x != y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = InferTest<NotDims<EqualDims>>,
     .eval = EvalTest<std::not_equal_to<>>,
     .layout = {.data = {"x", "y"}},
     .fp16 = {.kind = kAsksWhole},
     .range = RangeOfType,
     .wants = {{{"", WantOfComparison}}}},
    {.name = "pow",
     .doc = "x to the power y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<>,
     .eval = Eval<Pow>,
     .layout = {.data = {"x", "y"}},
     .neutral = {{{"y", 1, "x"}}},
     .fp16 = {.carries = kPlaces, .kind = kRough},
     .range = RangePow,
     .wants = {{{"x", WantOfBase}, {"y", WantOfExponent}}}},
    {.name = "real_div",
     .doc = "x / y; integers truncate",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<RealDivDims>,
     .eval = Eval<RealDiv>,
     .layout = {.data = {"x", "y"}},
     .neutral = {{{"y", 1, "x"}}},
     .fp16 = {.carries = kPlaces | kSteps, .kind = kProduct | kRough},
     .range = RangeDivided<AsItIs>,
     .wants = {{{"", WantOfQuotient}}}},
    {.name = "sub",
     .doc = "x - y",
     .forms = {{{kIos15, kNumbers}}},
     .infer = Infer<SubDims>,
     .eval = Eval<Sub>,
     .layout = {.data = {"x", "y"}},
     .neutral = {{{"y", 0, "x"}}},
     .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kKeepsWhole | kKeepsSums},
     .range = RangeSub,
     .wants = {{{"", WantOfSub}}}},
};

}  // namespace

std::span<const Row> ElementwiseBinaryRows() { return kRows; }

}  // namespace mlc
