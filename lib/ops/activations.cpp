#include <cmath>

#include "lib/ops/eval.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// Inference for operators with scalar alpha and beta.
void InferScaled(InferContext& context) {
  InferFloatX(context);
  CheckScalars(context, {"alpha", "beta"});
}

template <double (*kFunction)(double x, double alpha)>
void EvalAlpha(EvalContext& context) {
  double alpha = context.Double("alpha");
  context.Set(MapFloats(context.in("x"), [=](double x) { return kFunction(x, alpha); }));
}

template <double (*kFunction)(double x, double alpha, double beta)>
void EvalAlphaBeta(EvalContext& context) {
  double alpha = context.Double("alpha"), beta = context.Double("beta");
  context.Set(MapFloats(context.in("x"), [=](double x) { return kFunction(x, alpha, beta); }));
}

double ClampedRelu(double x, double alpha, double beta) {
  return MinimumOf(x >= 0 ? x : alpha * x, beta);
}
double Elu(double x, double alpha) { return x >= 0 ? x : alpha * std::expm1(x); }
double LeakyRelu(double x, double alpha) { return x >= 0 ? x : alpha * x; }
double Linear(double x, double alpha, double beta) { return alpha * x + beta; }
double Relu(double x) { return MaximumOf(x, 0.0); }
double Relu6(double x) { return MinimumOf(MaximumOf(x, 0.0), 6.0); }
double ScaledTanh(double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double HardSigmoid(double x, double alpha, double beta) {
  return MinimumOf(MaximumOf(alpha * x + beta, 0.0), 1.0);
}
double Silu(double x) { return x / (1 + std::exp(-x)); }
// log(1 + e^x) without overflow.
double Softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + MaximumOf(x, 0.0); }
double Softsign(double x) { return x / (1 + std::fabs(x)); }
double ThresholdedRelu(double x, double alpha) { return x >= alpha ? x : 0; }

constexpr double kSqrtHalf = 0.70710678118654752440, kSqrtTwoOverPi = 0.79788456080286535588;

double GeluExact(double x) { return 0.5 * x * std::erfc(-x * kSqrtHalf); }
double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}
double GeluSigmoid(double x) { return x * Sigmoid(1.702 * x); }

double (*GeluFunction(const OpContext& context))(double) {
  std::string mode = context.String("mode");
  if (mode == "EXACT") return GeluExact;
  if (mode == "TANH_APPROXIMATION") return GeluTanh;
  if (mode == "SIGMOID_APPROXIMATION") return GeluSigmoid;
  context.Fail("mode is \"{}\", expected EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", mode);
}
void InferGelu(InferContext& context) {
  GeluFunction(context);
  InferFloatX(context);
}
void EvalGelu(EvalContext& context) {
  context.Set(MapFloats(context.in("x"), GeluFunction(context)));
}

// Calls f(x, channel) for each element of x; dimension 1 holds the channels.
Tensor MapChannels(const Tensor& x, const std::function<double(double, int64_t)>& f) {
  int64_t inner = 1, channels = x.dims()[1], i = 0;
  for (int d = 2; d < x.rank(); ++d) inner *= x.dims()[d];
  return MapFloats(x, [&](double v) { return f(v, i++ / inner % channels); });
}

void InferPrelu(InferContext& context) {
  InferFloatX(context);
  int rank = context.rank("x");
  if (rank < 3 || rank > 5)
    context.Fail("x is {}, expected rank 3 to 5", context.type("x").ToString());
  CheckPerChannel(context, {"alpha"});
  // Core ML executes these ranks as leaky_relu.
  Tensor alpha = context.value("alpha");
  if (!alpha || rank == 4) return;
  for (int64_t i = 1; i < alpha.size(); ++i)
    if (std::fabs(alpha.Double(i) - alpha.Double(0)) > 1e-5)
      context.Fail("alpha differs between channels, which requires x of rank 4, not {}", rank);
}
void EvalPrelu(EvalContext& context) {
  std::vector<double> alpha = context.in("alpha").Doubles();
  context.Set(MapChannels(
      context.in("x"), [&](double x, int64_t channel) { return x >= 0 ? x : alpha[channel] * x; }));
}

void InferSoftplusParametric(InferContext& context) {
  InferFloatX(context);
  if (context.rank("x") < 3)
    context.Fail("x is {}, expected at least rank 3", context.type("x").ToString());
  CheckPerChannel(context, {"alpha", "beta"});
}
void EvalSoftplusParametric(EvalContext& context) {
  std::vector<double> alpha = context.in("alpha").Doubles(), beta = context.in("beta").Doubles();
  context.Set(MapChannels(context.in("x"), [&](double x, int64_t channel) {
    return alpha[channel] * Softplus(beta[channel] * x);
  }));
}

void InferSoftmax(InferContext& context) {
  InferFloatX(context);
  context.Axis(context.Int("axis"), context.rank("x"));
}
void EvalSoftmax(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = context.Axis(context.Int("axis"), x.rank());
  int64_t length = x.dims()[axis], stride = StridesOf(x.dims())[axis];
  Dims outer = x.dims();
  outer[axis] = 1;
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) -> Tensor {
    Out<T> out(x.dims());
    Pin<T> in = x.data<T>();
    std::vector<double> row(length);
    if (length > 0)
      Walk<1>(outer, {StridesOf(x.dims())}, [&](int64_t begin) {
        double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t i = 0; i < length; ++i)
          greatest = MaximumOf(greatest, static_cast<double>(in[begin + i * stride]));
        for (int64_t i = 0; i < length; ++i)
          sum += row[i] = std::exp(static_cast<double>(in[begin + i * stride]) - greatest);
        for (int64_t i = 0; i < length; ++i) out.data[begin + i * stride] = Narrow<T>(row[i] / sum);
      });
    return out.tensor;
  }));
}

constexpr std::string_view kAlpha15 = "x:T alpha:T! | T=fp16/fp32";
constexpr std::string_view kAlpha17 = "x:T alpha:U! | T=fp16/fp32 U=fp16/fp32";
constexpr std::string_view kAlphaBeta15 = "x:T alpha:T! beta:T! | T=fp16/fp32";
constexpr std::string_view kAlphaBeta17 = "x:T alpha:U! beta:U! | T=fp16/fp32 U=fp16/fp32";
constexpr std::array<FormRow, 4> kWithAlpha = {{{kIos15, kAlpha15}, {kIos17, kAlpha17}}};
constexpr std::array<FormRow, 4> kWithAlphaBeta = {
    {{kIos15, kAlphaBeta15}, {kIos17, kAlphaBeta17}}};

// The range over an interval of a function that is monotonic between the given points: its extremes
// are at the ends of the interval or at these points.
template <class F>
Interval Between(Interval x, F&& f, std::initializer_list<double> places) {
  double a = f(x.low), b = f(x.high);
  Interval found = {std::min(a, b), std::max(a, b)};
  for (double place : places)
    if (x.Contains(place)) found = Join(found, {f(place), f(place)});
  return found;
}

template <double (*kFunction)(double, double)>
Interval RangeAlpha(const RangeContext& context, int) {
  std::optional<double> alpha = context.Number("alpha");
  if (!alpha) return {};
  return Between(context.in("x"), [=](double x) { return kFunction(x, *alpha); }, {0});
}

template <double (*kFunction)(double, double, double)>
Interval RangeAlphaBeta(const RangeContext& context, int) {
  std::optional<double> alpha = context.Number("alpha"), beta = context.Number("beta");
  if (!alpha || !beta) return {};
  return Between(context.in("x"), [=](double x) { return kFunction(x, *alpha, *beta); }, {0});
}

Interval RangePrelu(const RangeContext& context, int) {
  Interval x = context.in("x"), kept = {std::max(x.low, 0.0), std::max(x.high, 0.0)};
  if (x.low >= 0) return x;
  return Join(kept, context.in("alpha") * Interval{x.low, std::min(x.high, 0.0)});
}

// x times a number from 0 to 1; the minimum is slightly below 0.
constexpr double kGeluLeast = -0.1705, kSiluLeast = -0.2785;
template <const double& kLeast>
Interval RangeGated(const RangeContext& context, int) {
  Interval x = context.in("x");
  return {x.low >= 0 ? 0 : std::max(x.low, kLeast), std::max(x.high, 0.0)};
}

Interval RangeSoftmax(const RangeContext&, int) { return {0, 1}; }

Interval RangeSoftplusParametric(const RangeContext& context, int) {
  Interval scaled = context.in("beta") * context.in("x");
  return context.in("alpha") * Interval{Softplus(scaled.low), Softplus(scaled.high)};
}

Interval RangeSoftsign(const RangeContext& context, int) {
  auto at = [](double x) { return std::isinf(x) ? std::copysign(1.0, x) : Softsign(x); };
  Interval x = context.in("x");
  return {at(x.low), at(x.high)};
}

Interval RangeThresholdedRelu(const RangeContext& context, int) {
  std::optional<double> alpha = context.Number("alpha");
  Interval x = context.in("x");
  return alpha && x.low >= *alpha ? x : Join(x, {0, 0});
}

template <double (*kFunction)(double, double)>
constexpr OpRow AlphaFunction(OpRow row) {
  row.signatures = kWithAlpha;
  row.infer = InferScaled;
  row.eval = EvalAlpha<kFunction>;
  row.layout = {.data = {"x"}};
  return row;
}
template <double (*kFunction)(double, double, double)>
constexpr OpRow AlphaBetaFunction(OpRow row) {
  row.signatures = kWithAlphaBeta;
  row.infer = InferScaled;
  row.eval = EvalAlphaBeta<kFunction>;
  row.layout = {.data = {"x"}};
  row.range = RangeAlphaBeta<kFunction>;
  return row;
}

constexpr OpRow kActivationRows[] = {
    AlphaBetaFunction<ClampedRelu>(
        {.name = "clamped_relu", .doc = "min(x, beta) if x >= 0, else min(alpha * x, beta)"}),
    AlphaFunction<Elu>(
        {.name = "elu", .doc = "x if x >= 0, else alpha * (e^x - 1)", .range = RangeAlpha<Elu>}),
    {.name = "gelu",
     .doc = "Gaussian error linear unit: x times the standard normal CDF of x, exact or in one of "
            "two approximations",
     .signatures = {{{kIos15, "x:T mode:string!=EXACT | T=fp16/fp32"}}},
     .infer = InferGelu,
     .eval = EvalGelu,
     .layout = {.data = {"x"}},
     .range = RangeGated<kGeluLeast>},
    AlphaFunction<LeakyRelu>({.name = "leaky_relu",
                              .doc = "x if x >= 0, else alpha * x",
                              .fp16 = {.carries = kSteps},
                              .eight_bit = EightBit::kActivation,
                              .homogeneous = true,
                              .range = RangeAlpha<LeakyRelu>}),
    AlphaBetaFunction<Linear>({.name = "linear_activation", .doc = "alpha * x + beta"}),
    {.name = "prelu",
     .doc = "x if x >= 0, else alpha * x, with one alpha per channel",
     .signatures = kWithAlpha,
     .infer = InferPrelu,
     .eval = EvalPrelu,
     .homogeneous = true,
     .range = RangePrelu},
    FloatFunction<Relu>({.name = "relu",
                         .doc = "max(x, 0)",
                         .fp16 = {.carries = kLogarithms | kCounts | kSteps, .kind = kKeepsWhole},
                         .eight_bit = EightBit::kActivation,
                         .homogeneous = true,
                         .range = RangeRising<Relu>}),
    FloatFunction<Relu6>({.name = "relu6",
                          .doc = "min(max(x, 0), 6)",
                          .fp16 = {.carries = kSteps, .kind = kKeepsWhole},
                          .eight_bit = EightBit::kActivation,
                          .range = RangeRising<Relu6>}),
    AlphaBetaFunction<ScaledTanh>({.name = "scaled_tanh",
                                   .doc = "alpha * tanh(beta * x)",
                                   .eight_bit = EightBit::kActivation}),
    FloatFunction<Sigmoid>({.name = "sigmoid",
                            .doc = "1 / (1 + e^-x)",
                            .fp16 = {.carries = kSelections},
                            .eight_bit = EightBit::kActivation,
                            .range = RangeRising<Sigmoid>}),
    AlphaBetaFunction<HardSigmoid>({.name = "sigmoid_hard",
                                    .doc = "min(max(alpha * x + beta, 0), 1)",
                                    .eight_bit = EightBit::kActivation}),
    FloatFunction<Silu>({.name = "silu", .doc = "x * sigmoid(x)", .range = RangeGated<kSiluLeast>}),
    {.name = "softmax",
     .doc = "e^x divided by the sum of e^x along axis",
     .signatures = {{{kIos15, "x:T axis:int32!=-1 | T=fp16/fp32"}}},
     .infer = InferSoftmax,
     .eval = EvalSoftmax,
     .layout = {.data = {"x"}, .axes = "axis"},
     .fp16 = {.carries = kSelections, .kind = kRough},
     .range = RangeSoftmax},
    FloatFunction<Softplus>(
        {.name = "softplus", .doc = "log(1 + e^x)", .range = RangeRising<Softplus>}),
    {.name = "softplus_parametric",
     .doc = "alpha * log(1 + e^(beta * x)), with one alpha and one beta per channel",
     .signatures = kWithAlphaBeta,
     .infer = InferSoftplusParametric,
     .eval = EvalSoftplusParametric,
     .range = RangeSoftplusParametric},
    FloatFunction<Softsign>({.name = "softsign", .doc = "x / (1 + |x|)", .range = RangeSoftsign}),
    AlphaFunction<ThresholdedRelu>({.name = "thresholded_relu",
                                    .doc = "x if x >= alpha, else 0",
                                    .range = RangeThresholdedRelu}),
};

}  // namespace

std::span<const OpRow> ActivationRows() { return kActivationRows; }

}  // namespace mlc
