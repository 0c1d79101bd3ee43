#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/ops/eval.h"
#include "lib/ops/row.h"

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

// The result in the type of the operands.
template <class F>
void Eval(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return MapPairs<T>(x, y, context.out_dims(), F{});
  }));
}
// The result is a truth value.
template <class F>
void EvalTest(EvalContext& context) {
  Tensor x = context.in("x"), y = context.in("y");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return MapPairs<T, bool>(x, y, context.out_dims(), F{});
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

constexpr Row kRows[] = {
    {"add", "x + y", {{{kIos15, kNumbers}}}, Infer<AddDims>, Eval<Add>},
    {"equal", "x == y", {{{kIos15, kNumbers}}}, InferTest<EqualDims>, EvalTest<std::equal_to<>>},
    {"floor_div",
     "x / y rounded towards negative infinity",
     {{{kIos15, kNumbers}}},
     Infer<FloorDivDims>,
     Eval<FloorDivide>},
    {"greater",
     "x > y",
     {{{kIos15, kNumbers}}},
     InferTest<SwappedDims<LessDims>>,
     EvalTest<std::greater<>>},
    {"greater_equal",
     "x >= y",
     {{{kIos15, kNumbers}}},
     InferTest<NotDims<LessDims>>,
     EvalTest<std::greater_equal<>>},
    {"less", "x < y", {{{kIos15, kNumbers}}}, InferTest<LessDims>, EvalTest<std::less<>>},
    {"less_equal",
     "x <= y",
     {{{kIos15, kNumbers}}},
     InferTest<NotDims<SwappedDims<LessDims>>>,
     EvalTest<std::less_equal<>>},
    {"logical_and", "x and y", {{{kIos15, kBools}}}, InferTest<>, EvalTest<And>},
    {"logical_or", "x or y", {{{kIos15, kBools}}}, InferTest<>, EvalTest<Or>},
    {"logical_xor", "x and y differ", {{{kIos15, kBools}}}, InferTest<>, EvalTest<Xor>},
    {"maximum",
     "the greater of x and y; NaN when either is",
     {{{kIos15, kNumbers}}},
     Infer<MaximumDims>,
     Eval<Maximum>},
    {"minimum",
     "the lesser of x and y; NaN when either is",
     {{{kIos15, kNumbers}}},
     Infer<MinimumDims>,
     Eval<Minimum>},
    {"mod",
     "remainder of floor_div; it has the sign of y",
     {{{kIos15, kNumbers}}},
     Infer<ModDims>,
     Eval<Mod>},
    {"mul", "x * y", {{{kIos15, kNumbers}}}, Infer<MulDims>, Eval<Mul>},
    {"not_equal",
     "x != y",
     {{{kIos15, kNumbers}}},
     InferTest<NotDims<EqualDims>>,
     EvalTest<std::not_equal_to<>>},
    {"pow", "x to the power y", {{{kIos15, kNumbers}}}, Infer<>, Eval<Pow>},
    {"real_div",
     "x / y; integers truncate",
     {{{kIos15, kNumbers}}},
     Infer<RealDivDims>,
     Eval<RealDiv>},
    {"sub", "x - y", {{{kIos15, kNumbers}}}, Infer<SubDims>, Eval<Sub>},
};

}  // namespace

std::span<const Row> ElementwiseBinaryRows() { return kRows; }

}  // namespace mlc
