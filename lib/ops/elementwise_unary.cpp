#include <cmath>

#include "lib/ops/eval.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

template <double (*kFunction)(double)>
void EvalFloats(EvalContext& context) {
  context.Set(MapFloats(context.in("x"), kFunction));
}

// sizes that were computed in floats stay known through floor, ceil and round
void InferRounding(InferContext& context) {
  InferFloatX(context);
  if (auto elements = WholeElements(context, "x")) context.Elements(std::move(*elements));
}

void EvalAbs(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Map<T>(x, [](Wide<T> v) -> Wide<T> {
      if constexpr (kIsFloat<T>)
        return std::fabs(v);
      else
        return std::is_signed_v<T> && v < 0 ? Wide<T>(0 - uint64_t(v)) : v;
    });
  }));
}

double Sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : v == 0 ? 0 : v; }

void EvalSign(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Map<T>(x, [](Wide<T> v) -> Wide<T> {
      if constexpr (kIsFloat<T>)
        return Sign(v);
      else if constexpr (std::is_signed_v<T>)
        return (v > 0) - (v < 0);
      else
        return v != 0;
    });
  }));
}

void EvalSquare(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Map<T>(x, [](Wide<T> v) -> Wide<T> {
      if constexpr (kIsFloat<T>)
        return v * v;
      else
        return Wide<T>(uint64_t(v) * uint64_t(v));
    });
  }));
}

// Integers: 2^x wrapped; a negative exponent gives 0, as truncation does.
void EvalExp2(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Map<T>(x, [](Wide<T> v) -> Wide<T> {
      if constexpr (kIsFloat<T>)
        return std::exp2(v);
      else
        return v >= 0 && v < 64 ? Wide<T>(uint64_t{1} << v) : 0;
    });
  }));
}

void InferClip(InferContext& context) {
  InferSameAsX(context);
  for (std::string_view bound : {"alpha", "beta"})
    if (context.rank(bound) != 0)
      context.Fail(
          fmt::format("{} is {}, expected a scalar", bound, context.type(bound).ToString()));
}

// A bound in the type in which elements of T are computed.
template <class T>
Wide<T> Bound(const Tensor& tensor) {
  if constexpr (kIsFloat<T>)
    return tensor.Double(0);
  else
    return Wide<T>(tensor.Int(0));
}

void EvalClip(EvalContext& context) {
  Tensor x = context.in("x"), alpha = context.in("alpha"), beta = context.in("beta");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Wide<T> low = Bound<T>(alpha), high = Bound<T>(beta);
    return Map<T>(x, [&](Wide<T> v) { return MinimumOf(MaximumOf(v, low), high); });
  }));
}

void EvalThreshold(EvalContext& context) {
  Tensor x = context.in("x"), alpha = context.in("alpha");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Wide<T> low = Bound<T>(alpha);
    return Map<T>(x, [&](Wide<T> v) { return MaximumOf(v, low); });
  }));
}

void EvalLogicalNot(EvalContext& context) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Map<T, bool>(x, [](Wide<T> v) { return v == 0; });
  }));
}

void InferLogicalNot(InferContext& context) { context.Result(DType::kBool, context.shape("x")); }

// The default epsilon is a number in x's own type: that of log is 0 for fp16 and the least positive
// number for fp32.
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
    context.Fail(fmt::format("dtype is \"{}\", expected the name of a number type or bool", name));
  context.Result(*dtype, context.shape("x"));
  // A size keeps its value in every type that holds it.
  bool holds_sizes = Bits(*dtype) >= 32 || *dtype == DType::kInt16 || *dtype == DType::kUint16;
  if (!holds_sizes) return;
  if (auto elements = WholeElements(context, "x")) context.Elements(std::move(*elements));
}

void EvalCast(EvalContext& context) { context.Set(context.in("x").Cast(context.out_dtype())); }

constexpr std::string_view kFloatX = "x:T | T=fp16/fp32";
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

constexpr Row kRows[] = {
    {"abs", "|x|", {{{kIos15, kNumberX}}}, InferSameAsX, EvalAbs},
    {"acos", "arc cosine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kAcos>},
    {"asin", "arc sine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kAsin>},
    {"atan", "arc tangent of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kAtan>},
    {"atanh",
     "inverse hyperbolic tangent of x",
     {{{kIos15, kFloatX}}},
     InferFloatX,
     EvalFloats<kAtanh>},
    {"cast",
     "x converted to dtype; floats become integers by truncation",
     {{{kIos15, "x:T dtype:string! | T=fp16/fp32/int32/bool"},
       {kIos17, "x:T dtype:string! | T=fp16/fp32/int8/uint8/int16/uint16/int32/bool"}}},
     InferCast,
     EvalCast},
    {"ceil", "least integer not below x", {{{kIos15, kFloatX}}}, InferRounding, EvalFloats<kCeil>},
    {"clip", "min(max(x, alpha), beta)", {{{kIos15, kClip}, {kIos17, kClip}}}, InferClip, EvalClip},
    {"cos", "cosine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kCos>},
    {"cosh", "hyperbolic cosine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kCosh>},
    {"erf", "error function of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kErf>},
    {"exp", "e^x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kExp>},
    {"exp2", "2^x", {{{kIos15, kNumberX}}}, InferSameAsX, EvalExp2},
    {"floor",
     "greatest integer not above x",
     {{{kIos15, kFloatX}}},
     InferRounding,
     EvalFloats<kFloor>},
    {"inverse",
     "1 / (x + epsilon); epsilon is 1e-4 when left out",
     {{{kIos15, kEpsilon15}, {kIos17, kEpsilon17}}},
     InferFloatX,
     EvalWithEpsilon<Inverse>,
     DefaultEpsilon<kInverseEpsilon>},
    {"log",
     "natural logarithm of x + epsilon; epsilon is 1e-45 when left out",
     {{{kIos15, kEpsilon15}, {kIos17, kEpsilon17}}},
     InferFloatX,
     EvalWithEpsilon<kLog>,
     DefaultEpsilon<kLogEpsilon>},
    {"logical_not", "not x", {{{kIos15, "x:bool"}}}, InferLogicalNot, EvalLogicalNot},
    {"round",
     "nearest integer, ties to even",
     {{{kIos15, kFloatX}}},
     InferRounding,
     EvalFloats<kRound>},
    {"rsqrt",
     "1 / sqrt(x + epsilon); epsilon is 1e-12 when left out",
     {{{kIos15, kEpsilon15}, {kIos17, kEpsilon17}}},
     InferFloatX,
     EvalWithEpsilon<InverseRoot>,
     DefaultEpsilon<kRsqrtEpsilon>},
    {"sign",
     "-1, 0 or 1 as x is negative, zero or positive",
     {{{kIos15, kNumberX}}},
     InferSameAsX,
     EvalSign},
    {"sin", "sine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kSin>},
    {"sinh", "hyperbolic sine of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kSinh>},
    {"sqrt", "square root of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kSqrt>},
    {"square", "x * x", {{{kIos15, kNumberX}}}, InferSameAsX, EvalSquare},
    {"tan", "tangent of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kTan>},
    {"tanh", "hyperbolic tangent of x", {{{kIos15, kFloatX}}}, InferFloatX, EvalFloats<kTanh>},
    {"threshold",
     "max(x, alpha)",
     {{{kIos15, "x:T alpha:T! | T=fp16/fp32/int32"}}},
     InferSameAsX,
     EvalThreshold},
};

}  // namespace

std::span<const Row> ElementwiseUnaryRows() { return kRows; }

}  // namespace mlc
