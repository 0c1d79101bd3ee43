#include <cmath>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// Sizes computed in floats remain known after floor, ceil and round.
void InferRounding(InferContext& context) {
  InferFloatX(context);
  if (auto elements = WholeElements(context, "x")) context.Elements(std::move(*elements));
}

// Evaluates a function of one number of any dtype.
template <auto kFunction>
void EvalNumbers(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    return Map<T>(x, [](Wide<T> v) -> Wide<T> { return kFunction(v); });
  }));
}

double Sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : v == 0 ? 0 : v; }

constexpr auto kAbs = [](auto v) { return MagnitudeOf(v); };
constexpr auto kSign = []<class W>(W v) {
  if constexpr (std::is_same_v<W, double>)
    return Sign(v);
  else
    return W(v > 0) - W(v < 0);
};
constexpr auto kSquare = []<class W>(W v) { return W(Wrapping<W>(v) * Wrapping<W>(v)); };
// For integers, 2^x wraps; a negative exponent gives 0 because of truncation.
constexpr auto kExp2 = []<class W>(W v) -> W {
  if constexpr (std::is_same_v<W, double>)
    return std::exp2(v);
  else
    return v >= 0 && v < 64 ? W(uint64_t{1} << v) : 0;
};

void InferClip(InferContext& context) {
  InferSameAsX(context);
  CheckScalars(context, {"alpha", "beta"});
}

// A bound in the type used to compute with elements of T.
template <class T>
Wide<T> Bound(const Tensor& tensor) {
  if constexpr (kIsFloat<T>)
    return tensor.Double(0);
  else
    return Wide<T>(tensor.Int(0));
}

void EvalClip(EvalContext& context) {
  Tensor x = context.in("x"), alpha = context.in("alpha"), beta = context.in("beta");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    Wide<T> low = Bound<T>(alpha), high = Bound<T>(beta);
    return Map<T>(x, [&](Wide<T> v) { return MinimumOf(MaximumOf(v, low), high); });
  }));
}

void EvalThreshold(EvalContext& context) {
  Tensor x = context.in("x"), alpha = context.in("alpha");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    Wide<T> low = Bound<T>(alpha);
    return Map<T>(x, [&](Wide<T> v) { return MaximumOf(v, low); });
  }));
}

void EvalLogicalNot(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(
      x.dtype(), [&]<class T>(T) { return Map<T, bool>(x, [](Wide<T> v) { return v == 0; }); }));
}

void InferLogicalNot(InferContext& context) { context.Result(DType::kBool, context.shape("x")); }

// The default epsilon is converted to the dtype of x: that of log is 0 in fp16 and the smallest
// positive number in fp32.
template <const double& kEpsilon>
Tensor DefaultEpsilon(const OpContext& context, std::string_view) {
  return Tensor::Full(context.dtype("x"), {}, kEpsilon);
}
constexpr double kInverseEpsilon = 1e-4, kLogEpsilon = 1e-45, kRsqrtEpsilon = 1e-12;

template <double (*kFunction)(double)>
void EvalWithEpsilon(EvalContext& context) {
  double epsilon = context.Double("epsilon");
  context.Set(MapFloats(context.in("x"), [=](double x) { return kFunction(x + epsilon); }));
}

double Inverse(double x) { return 1 / x; }
double InverseRoot(double x) { return 1 / std::sqrt(x); }

void InferCast(InferContext& context) {
  std::string name = context.String("dtype");
  std::optional<DType> dtype = ParseDType(name);
  if (!dtype || *dtype == DType::kString || Bits(*dtype) < 8)
    context.Fail("dtype is \"{}\", expected the name of a number type or bool", name);
  context.Result(*dtype, context.shape("x"));
  // A size keeps its value in every dtype that represents it.
  bool holds_sizes = Bits(*dtype) >= 32 || *dtype == DType::kInt16 || *dtype == DType::kUint16;
  if (!holds_sizes) return;
  if (auto elements = WholeElements(context, "x")) context.Elements(std::move(*elements));
}

void EvalCast(EvalContext& context) { context.Set(context.in("x").Cast(context.out_dtype())); }

constexpr std::string_view kNumberX = "x:T | T=fp16/fp32/int32";
constexpr std::string_view kEpsilon15 = "x:T epsilon:T!=* | T=fp16/fp32";
constexpr std::string_view kEpsilon17 = "x:T epsilon:U!=* | T=fp16/fp32 U=fp16/fp32";
constexpr std::string_view kClip = "x:T alpha:T! beta:T! | T=fp16/fp32";

using Function = double (*)(double);
constexpr Function kAcos = std::acos, kAsin = std::asin, kAtan = std::atan, kAtanh = std::atanh,
                   kCeil = std::ceil, kCos = std::cos, kCosh = std::cosh, kErf = std::erf,
                   kExp = std::exp, kFloor = std::floor, kLog = std::log, kRound = std::nearbyint,
                   kSin = std::sin, kSinh = std::sinh, kSqrt = std::sqrt, kTan = std::tan,
                   kTanh = std::tanh;

// Restricts x to the domain of the function, on which it is increasing.
template <double (*kFunction)(double)>
Interval RangeWithin(Interval x, double low, double high) {
  return {kFunction(std::clamp(x.low, low, high)), kFunction(std::clamp(x.high, low, high))};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Interval RangeAbs(const RangeContext& context, int) { return Magnitude(context.in("x")); }
Interval RangeAcos(const RangeContext& context, int) {
  Interval x = RangeWithin<kAcos>(context.in("x"), -1, 1);
  return {x.high, x.low};
}
Interval RangeAsin(const RangeContext& context, int) {
  return RangeWithin<kAsin>(context.in("x"), -1, 1);
}
Interval RangeAtanh(const RangeContext& context, int) {
  return RangeWithin<kAtanh>(context.in("x"), -1, 1);
}
Interval RangeCast(const RangeContext& context, int result) {
  Interval x = context.in("x");
  if (context.out_dtype(result) == DType::kBool) return {x.low > 0 || x.high < 0 ? 1.0 : 0, 1};
  return IsFloat(context.out_dtype(result)) ? x : Interval{std::trunc(x.low), std::trunc(x.high)};
}
Interval RangeClip(const RangeContext& context, int) {
  Interval x = context.in("x"), low = context.in("alpha"), high = context.in("beta");
  return {std::min(std::max(x.low, low.low), high.low),
          std::min(std::max(x.high, low.high), high.high)};
}
Interval RangeWave(const RangeContext&, int) { return {-1, 1}; }
Interval RangeCosh(const RangeContext& context, int) {
  Interval x = Magnitude(context.in("x"));
  return {std::cosh(x.low), std::cosh(x.high)};
}
Interval RangeExp2(const RangeContext& context, int) {
  Interval x = context.in("x");
  Interval power = {std::exp2(x.low), std::exp2(x.high)};
  return IsFloat(context.dtype("x")) ? power
                                     : Interval{std::trunc(power.low), std::trunc(power.high)};
}
Interval RangeInverse(const RangeContext& context, int) {
  return Reciprocal(context.in("x") + context.in("epsilon"));
}
Interval RangeLog(const RangeContext& context, int) {
  return RangeWithin<kLog>(context.in("x") + context.in("epsilon"), 0, kInfinity);
}
Interval RangeLogicalNot(const RangeContext& context, int) {
  Interval x = context.in("x");
  return {1 - x.high, 1 - x.low};
}
Interval RangeRsqrt(const RangeContext& context, int) {
  Interval root = RangeWithin<kSqrt>(context.in("x") + context.in("epsilon"), 0, kInfinity);
  return Reciprocal(root);
}
Interval RangeSquare(const RangeContext& context, int) { return Square(context.in("x")); }
Interval RangeSqrt(const RangeContext& context, int) {
  return RangeWithin<kSqrt>(context.in("x"), 0, kInfinity);
}
Interval RangeTan(const RangeContext& context, int) {
  constexpr double kBranch = 1.57;  // just below the pole
  Interval x = context.in("x");
  return -kBranch <= x.low && x.high <= kBranch ? Interval{std::tan(x.low), std::tan(x.high)}
                                                : Interval();
}
Interval RangeThreshold(const RangeContext& context, int) {
  Interval x = context.in("x"), least = context.in("alpha");
  return {std::max(x.low, least.low), std::max(x.high, least.high)};
}

// Requires that the operand lies in the domain of the function.
OperandConstraint InDomain(const ConstraintContext& context, double low, double high) {
  return OperandConstraint::Bounded(low, high, fmt::format("domain of {}", Quoted(context.op)));
}
OperandConstraint WantOfRoot(const ConstraintContext& context) {
  return InDomain(context, 0, kInfinity);
}
OperandConstraint WantOfLogarithm(const ConstraintContext& context) {
  Tensor epsilon = context.op.constant("epsilon");
  return InDomain(context, 1e-3 - (epsilon ? epsilon.Double(0) : 0), kInfinity);
}
OperandConstraint WantOfSine(const ConstraintContext& context) { return InDomain(context, -1, 1); }
OperandConstraint WantOfTangent(const ConstraintContext& context) {
  return InDomain(context, -0.99, 0.99);
}

// Bounds near the limits of fp16 only guard against overflow; inputs need not be generated near
// them.
OperandConstraint WantOfClip(const ConstraintContext& context) {
  constexpr double kGuard = 65504;
  auto bound = [&](std::string_view param, double fallback) {
    std::optional<Interval> known = context.Known(param);
    return known && std::fabs(known->low) < kGuard ? known->low : fallback;
  };
  return Clamped(context, context.Asked(), bound("alpha", -kInfinity), bound("beta", kInfinity));
}

OperandConstraint WantOfCast(const ConstraintContext& context) {
  OperandConstraint constraint = context.Moved();
  if (context.op.result()->type.dtype == DType::kBool && context.value.type.dtype != DType::kBool) {
    constraint.soft_low = std::min(constraint.soft_low, 0.0);
    constraint.soft_high = std::max(constraint.soft_high, 1.0);
    constraint.mask = true;
  }
  return constraint;
}

OperandConstraint WantOfNot(const ConstraintContext& context) {
  OperandConstraint constraint = context.Asked();
  if (constraint.valid >= 0) constraint.valid = 1 - constraint.valid;
  return constraint;
}

template <auto kFunction>
constexpr OpRow NumberFunction(OpRow row) {
  row.signatures = {{{kIos15, kNumberX}}};
  row.infer = InferSameAsX;
  row.eval = EvalNumbers<kFunction>;
  row.layout = {.data = {"x"}};
  return row;
}
template <double (*kFunction)(double)>
constexpr OpRow Rounding(OpRow row) {
  row = FloatFunction<kFunction>(row);
  row.infer = InferRounding;
  row.range = RangeRising<kFunction>;
  return row;
}
template <double (*kFunction)(double), const double& kEpsilon>
constexpr OpRow WithEpsilon(OpRow row) {
  row = FloatFunction<kFunction>(row);
  row.signatures = {{{kIos15, kEpsilon15}, {kIos17, kEpsilon17}}};
  row.eval = EvalWithEpsilon<kFunction>;
  row.default_value = DefaultEpsilon<kEpsilon>;
  return row;
}

constexpr OpRow kElementwiseUnaryRows[] = {
    NumberFunction<kAbs>({.name = "abs",
                          .doc = "|x|",
                          .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps},
                          .range = RangeAbs}),
    FloatFunction<kAcos>({.name = "acos",
                          .doc = "arc cosine of x",
                          .fp16 = {.needs = kAngles},
                          .range = RangeAcos,
                          .constraints = {{{"x", WantOfSine}}}}),
    FloatFunction<kAsin>({.name = "asin",
                          .doc = "arc sine of x",
                          .fp16 = {.needs = kAngles},
                          .range = RangeAsin,
                          .constraints = {{{"x", WantOfSine}}}}),
    FloatFunction<kAtan>({.name = "atan", .doc = "arc tangent of x", .range = RangeRising<kAtan>}),
    FloatFunction<kAtanh>({.name = "atanh",
                           .doc = "inverse hyperbolic tangent of x",
                           .fp16 = {.needs = kAngles},
                           .range = RangeAtanh,
                           .constraints = {{{"x", WantOfTangent}}}}),
    {.name = "cast",
     .doc = "x converted to dtype; float to integer truncates",
     .signatures = {{{kIos15, "x:T dtype:string! | T=fp16/fp32/int32/bool"},
                     {kIos17,
                      "x:T dtype:string! | T=fp16/fp32/int8/uint8/int16/uint16/int32/bool"}}},
     .infer = InferCast,
     .eval = EvalCast,
     .layout = {.data = {"x"}},
     .fp16 = {.carries = kPlaces | kSteps | kWholeSums, .kind = kKeepsSums},
     .range = RangeCast,
     .constraints = {{{"x", WantOfCast}}}},
    Rounding<kCeil>({.name = "ceil",
                     .doc = "smallest integer not less than x",
                     .fp16 = {.needs = kSteps, .kind = kMakesWhole | kAsksWhole}}),
    {.name = "clip",
     .doc = "min(max(x, alpha), beta)",
     .signatures = {{{kIos15, kClip}, {kIos17, kClip}}},
     .infer = InferClip,
     .eval = EvalClip,
     .layout = {.data = {"x"}},
     .fp16 = {.carries = kLogarithms | kSelections | kCounts | kSteps | kWholeSums,
              .kind = kKeepsWhole,
              .bounds = {"alpha", "beta"}},
     .range = RangeClip,
     .constraints = {{{"x", WantOfClip}}}},
    FloatFunction<kCos>(
        {.name = "cos", .doc = "cosine of x", .fp16 = {.needs = kAngles}, .range = RangeWave}),
    FloatFunction<kCosh>({.name = "cosh", .doc = "hyperbolic cosine of x", .range = RangeCosh}),
    FloatFunction<kErf>({.name = "erf", .doc = "error function of x", .range = RangeRising<kErf>}),
    FloatFunction<kExp>({.name = "exp",
                         .doc = "e^x",
                         .fp16 = {.carries = kSelections, .kind = kRough},
                         .range = RangeRising<kExp>}),
    NumberFunction<kExp2>(
        {.name = "exp2", .doc = "2^x", .fp16 = {.kind = kRough}, .range = RangeExp2}),
    Rounding<kFloor>(
        {.name = "floor",
         .doc = "largest integer not greater than x",
         .fp16 = {.needs = kSteps, .carries = kWholeSums, .kind = kMakesWhole | kAsksWhole}}),
    WithEpsilon<Inverse, kInverseEpsilon>({.name = "inverse",
                                           .doc = "1 / (x + epsilon); epsilon defaults to 1e-4",
                                           .fp16 = {.kind = kRough},
                                           .range = RangeInverse}),
    WithEpsilon<kLog, kLogEpsilon>(
        {.name = "log",
         .doc = "natural logarithm of x + epsilon; epsilon defaults to 1e-45",
         .fp16 = {.needs = kLogarithms, .kind = kRough},
         .range = RangeLog,
         .constraints = {{{"x", WantOfLogarithm}}}}),
    {.name = "logical_not",
     .doc = "logical not",
     .signatures = {{{kIos15, "x:bool"}}},
     .infer = InferLogicalNot,
     .eval = EvalLogicalNot,
     .layout = {.data = {"x"}},
     .range = RangeLogicalNot,
     .constraints = {{{"x", WantOfNot}}}},
    Rounding<kRound>({.name = "round",
                      .doc = "x rounded to the nearest integer, ties to even",
                      .fp16 = {.needs = kSteps,
                               .carries = kSteps | kWholeSums,
                               .kind = kMakesWhole | kAsksWhole}}),
    WithEpsilon<InverseRoot, kRsqrtEpsilon>(
        {.name = "rsqrt",
         .doc = "1 / sqrt(x + epsilon); epsilon defaults to 1e-12",
         .fp16 = {.carries = kLogarithms, .kind = kRough},
         .range = RangeRsqrt,
         .constraints = {{{"x", WantOfLogarithm}}}}),
    NumberFunction<kSign>({.name = "sign",
                           .doc = "sign of x: -1, 0 or 1",
                           .fp16 = {.needs = kSteps},
                           .range = RangeRising<Sign>}),
    FloatFunction<kSin>(
        {.name = "sin", .doc = "sine of x", .fp16 = {.needs = kAngles}, .range = RangeWave}),
    FloatFunction<kSinh>(
        {.name = "sinh", .doc = "hyperbolic sine of x", .range = RangeRising<kSinh>}),
    FloatFunction<kSqrt>({.name = "sqrt",
                          .doc = "square root of x",
                          .fp16 = {.carries = kLogarithms | kSelections | kCounts, .kind = kRough},
                          .range = RangeSqrt,
                          .constraints = {{{"x", WantOfRoot}}}}),
    NumberFunction<kSquare>({.name = "square",
                             .doc = "x * x",
                             .fp16 = {.carries = kLogarithms | kSelections | kCounts},
                             .range = RangeSquare}),
    FloatFunction<kTan>(
        {.name = "tan", .doc = "tangent of x", .fp16 = {.needs = kAngles}, .range = RangeTan}),
    FloatFunction<kTanh>({.name = "tanh",
                          .doc = "hyperbolic tangent of x",
                          .eight_bit = EightBit::kActivation,
                          .range = RangeRising<kTanh>}),
    {.name = "threshold",
     .doc = "max(x, alpha)",
     .signatures = {{{kIos15, "x:T alpha:T! | T=fp16/fp32/int32"}}},
     .infer = InferSameAsX,
     .eval = EvalThreshold,
     .layout = {.data = {"x"}},
     .range = RangeThreshold},
};

}  // namespace

std::span<const OpRow> ElementwiseUnaryRows() { return kElementwiseUnaryRows; }

}  // namespace mlc
