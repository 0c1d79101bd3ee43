#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

void CheckRank(const OpContext& context, int low, int high) {
  int rank = context.rank("x");
  if (rank < low || rank > high)
    context.Fail("x is {}, expected rank {} to {}", context.type("x").ToString(), low, high);
}

std::vector<double> Doubles(const EvalContext& context, std::string_view name) {
  Tensor tensor = context.in(name);
  return tensor ? tensor.Doubles() : std::vector<double>();
}
// Scale and offset of a normalised number; an empty vector means omitted.
struct Affine {
  std::vector<double> gamma, beta;
  explicit Affine(const EvalContext& context)
      : gamma(Doubles(context, "gamma")), beta(Doubles(context, "beta")) {}
  double operator()(double v, int64_t i) const {
    return (gamma.empty() ? v : v * gamma[i]) + (beta.empty() ? 0 : beta[i]);
  }
};

// Mean and 1 / sqrt(variance + epsilon) of the elements visited by `each`.
struct Moments {
  double mean = 0, scale = 0;
  template <class Each>
  Moments(double epsilon, const Each& each) {
    double count = 0, squares = 0;
    each([&](double v) { mean += v, ++count; });
    mean /= count;
    each([&](double v) { squares += (v - mean) * (v - mean); });
    scale = 1 / std::sqrt(squares / count + epsilon);
  }
};

// Calls f(in, out) with typed data of x and of a result with the shape of x, which becomes the
// result of the operation.
template <class F>
void EvalLikeX(EvalContext& context, F&& f) {
  Tensor x = context.in("x");
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) -> Tensor {
    Out<T> out(x.dims());
    Pin<T> in = x.data<T>();
    f(in.span(), out.data);
    return out.tensor;
  }));
}

int64_t InnerSize(const Dims& dims, int from) {
  int64_t size = 1;
  for (size_t d = from; d < dims.size(); ++d) size *= dims[d];
  return size;
}

void InferBatchNorm(InferContext& context) {
  CheckRank(context, 3, 5);
  CheckPerChannel(context, {"mean", "variance", "gamma", "beta"});
  InferFloatX(context);
}
void EvalBatchNorm(EvalContext& context) {
  std::vector<double> mean = Doubles(context, "mean"), variance = Doubles(context, "variance");
  Affine affine(context);
  double epsilon = context.Double("epsilon");
  Dims dims = context.out_dims();
  int64_t channels = dims[1], inner = InnerSize(dims, 2);
  EvalLikeX(context, [&](auto in, auto out) {
    using T = typename decltype(out)::value_type;
    for (size_t i = 0; i < in.size(); ++i) {
      int64_t c = static_cast<int64_t>(i) / inner % channels;
      double v = (static_cast<double>(in[i]) - mean[c]) / std::sqrt(variance[c] + epsilon);
      out[i] = Narrow<T>(affine(v, c));
    }
  });
}

void InferInstanceNorm(InferContext& context) {
  CheckRank(context, 3, 5);
  CheckPerChannel(context, {"gamma", "beta"});
  InferFloatX(context);
}
void EvalInstanceNorm(EvalContext& context) {
  Affine affine(context);
  double epsilon = context.Double("epsilon");
  Dims dims = context.out_dims();
  int64_t channels = dims[1], inner = InnerSize(dims, 2);
  EvalLikeX(context, [&](auto in, auto out) {
    using T = typename decltype(out)::value_type;
    for (int64_t row = 0; row < dims[0] * channels && inner > 0; ++row) {
      const int64_t begin = row * inner, end = begin + inner;
      Moments moments(epsilon, [&](auto&& visit) {
        for (int64_t i = begin; i < end; ++i) visit(static_cast<double>(in[i]));
      });
      for (int64_t i = begin; i < end; ++i)
        out[i] = Narrow<T>(
            affine((static_cast<double>(in[i]) - moments.mean) * moments.scale, row % channels));
    }
  });
}

void InferL2Norm(InferContext& context) {
  if (context.rank("x") < 3)
    context.Fail("x is {}, expected at least rank 3", context.type("x").ToString());
  InferFloatX(context);
}
void EvalL2Norm(EvalContext& context) {
  double epsilon = context.Double("epsilon");
  Dims dims = context.out_dims();
  int64_t inner = InnerSize(dims, static_cast<int>(dims.size()) - 3);
  EvalLikeX(context, [&](auto in, auto out) {
    using T = typename decltype(out)::value_type;
    for (size_t begin = 0; begin < in.size(); begin += inner) {
      double squares = 0;
      for (int64_t i = 0; i < inner; ++i) {
        double v = static_cast<double>(in[begin + i]);
        squares += v * v;
      }
      double norm = std::sqrt(squares + epsilon);
      for (int64_t i = 0; i < inner; ++i)
        out[begin + i] = Narrow<T>(static_cast<double>(in[begin + i]) / norm);
    }
  });
}

std::vector<bool> NormalizedAxes(const OpContext& context) {
  std::vector<bool> normalized(context.rank("x"), false);
  for (int64_t axis : context.Ints("axes"))
    normalized[OpContext::Axis(axis, context.rank("x"))] = true;
  return normalized;
}

// The default of axes: all of them.
Tensor LayerNormDefault(const OpContext& context, std::string_view) {
  return Ints(Consecutive(0, context.rank("x")));
}

void InferLayerNorm(InferContext& context) {
  std::vector<bool> normalized = NormalizedAxes(context);
  Shape expected;
  for (size_t i = 0; i < normalized.size(); ++i)
    if (normalized[i]) expected.push_back(context.shape("x")[i]);
  for (std::string_view name : {"gamma", "beta"}) {
    if (!context.has(name)) continue;
    const Shape& shape = context.shape(name);
    auto fits = [](const Dim& a, const Dim& b) {
      return a == b || !a.is_constant() || !b.is_constant();
    };
    if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end(), fits))
      context.Fail("{} is {}, expected shape {}", name, context.type(name).ToString(),
                   ToString(expected));
  }
  InferFloatX(context);
}
void EvalLayerNorm(EvalContext& context) {
  std::vector<bool> normalized = NormalizedAxes(context);
  Affine affine(context);
  double epsilon = context.Double("epsilon");
  Dims dims = context.out_dims(), strides = StridesOf(dims);
  Dims outer, outer_strides, inner, inner_strides;
  for (size_t i = 0; i < dims.size(); ++i) {
    (normalized[i] ? inner : outer).push_back(dims[i]);
    (normalized[i] ? inner_strides : outer_strides).push_back(strides[i]);
  }
  EvalLikeX(context, [&](auto in, auto out) {
    using T = typename decltype(out)::value_type;
    Walk<1>(outer, {outer_strides}, [&](int64_t base) {
      Moments moments(epsilon, [&](auto&& visit) {
        Walk<1>(inner, {inner_strides},
                [&](int64_t i) { visit(static_cast<double>(in[base + i])); });
      });
      int64_t at = 0;
      Walk<1>(inner, {inner_strides}, [&](int64_t i) {
        double v = (static_cast<double>(in[base + i]) - moments.mean) * moments.scale;
        out[base + i] = Narrow<T>(affine(v, at++));
      });
    });
  });
}

void InferLocalResponseNorm(InferContext& context) {
  CheckRank(context, 3, 5);
  if (context.Int("size") < 1) context.Fail("size is {}, expected at least 1", context.Int("size"));
  InferFloatX(context);
}
// The channels are dimension 1, as documented and as coremltools' tests against torch expect in
// ranks 3 to 5 (one older test expects dimension 0 for rank 3). The larger half of an even window
// precedes the element, as in torch.
void EvalLocalResponseNorm(EvalContext& context) {
  int64_t size = context.Int("size");
  double alpha = context.Double("alpha"), beta = context.Double("beta"), k = context.Double("k");
  Dims dims = context.out_dims();
  int64_t channels = dims[1], inner = InnerSize(dims, 2);
  int64_t before = std::min(size / 2, channels), after = std::min((size - 1) / 2, channels);
  EvalLikeX(context, [&](auto in, auto out) {
    using T = typename decltype(out)::value_type;
    for (int64_t i = 0; i < static_cast<int64_t>(in.size()); ++i) {
      int64_t c = i / inner % channels;
      double squares = 0;
      for (int64_t j = std::max<int64_t>(c - before, 0); j <= std::min(c + after, channels - 1);
           ++j) {
        double v = static_cast<double>(in[i + (j - c) * inner]);
        squares += v * v;
      }
      double norm = std::pow(k + alpha / static_cast<double>(size) * squares, beta);
      out[i] = Narrow<T>(static_cast<double>(in[i]) / norm);
    }
  });
}

// gamma * x + beta, for the operands that are present.
Interval Affine(const RangeContext& context, Interval x) {
  if (context.has("gamma")) x = x * context.in("gamma");
  return context.has("beta") ? RoundedSum(x, context.in("beta")) : x;
}
// No number of a sample of n deviates from the mean by more than sqrt(n) standard deviations.
Interval RangeNormalised(const RangeContext& context, double n) {
  double most = std::sqrt(n) * (1 + 1e-9);
  return Affine(context, {-most, most});
}
Interval RangeBatchNorm(const RangeContext& context, int) {
  Interval deviation = context.in("variance") + context.in("epsilon");
  if (deviation.low <= 0) return {};
  deviation = {std::sqrt(deviation.low), std::sqrt(deviation.high)};
  return Affine(context, (context.in("x") - context.in("mean")) * Reciprocal(deviation));
}
Interval RangeInstanceNorm(const RangeContext& context, int) {
  double n = 1;
  for (int d = 2; d < context.rank("x"); ++d) n *= context.Size("x", d);
  return RangeNormalised(context, n);
}
Interval RangeLayerNorm(const RangeContext& context, int) {
  Tensor axes = context.value("axes");
  double n = axes ? 1 : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; axes && i < axes.size(); ++i)
    n *= context.Size("x", OpContext::Axis(axes.Int(i), context.rank("x")));
  return RangeNormalised(context, n);
}
Interval RangeL2Norm(const RangeContext& context, int) {
  Interval x = context.in("x");
  return {x.low >= 0 ? 0.0 : -1, x.high <= 0 ? 0.0 : 1};
}
// The divisor is at least 1 for the usual constants.
Interval RangeLocalResponseNorm(const RangeContext& context, int) {
  bool shrinks =
      context.in("k").low >= 1 && context.in("alpha").low >= 0 && context.in("beta").low >= 0;
  return shrinks ? Join(context.in("x"), {0, 0}) : Interval();
}

OperandConstraint WantOfBatchNorm(const ConstraintContext& context) {
  std::optional<Interval> mean = context.Known("mean"), variance = context.Known("variance");
  if (!mean || !variance || variance->high <= 0) return {};
  OperandConstraint constraint;
  constraint.center = (mean->low + mean->high) / 2;
  constraint.scale = std::sqrt(variance->high) + (mean->high - mean->low) / 2;
  if (constraint.scale < 4 && std::fabs(constraint.center) < 4) return {};
  constraint.why = fmt::format("mean and variance of {}", Quoted(context.op));
  return constraint;
}

constexpr OpRow kNormalizationRows[] = {
    {.name = "batch_norm",
     .doc = "gamma * (x - mean) / sqrt(variance + epsilon) + beta, with one element of each per "
            "channel",
     .signatures = {{{kIos15,
                      "x:T mean:T! variance:T! gamma:T!? beta:T!? epsilon:T!=1e-05 | T=fp16/fp32"},
                     {kIos17,
                      "x:T mean:U! variance:U! gamma:U!? beta:U!? epsilon:U!=1e-05 | T=fp16/fp32 "
                      "U=fp16/fp32"}}},
     .infer = InferBatchNorm,
     .eval = EvalBatchNorm,
     .fp16 = {.kind = kRough},
     .range = RangeBatchNorm,
     .constraints = {{{"x", WantOfBatchNorm}}}},
    {.name = "instance_norm",
     .doc = "x normalised over its spatial dimensions, then scaled by gamma and shifted by beta "
            "per channel",
     .signatures = {{{kIos15, "x:T gamma:T!? beta:T!? epsilon:T!=1e-05 | T=fp16/fp32"},
                     {kIos17,
                      "x:T gamma:U!? beta:U!? epsilon:U!=1e-05 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferInstanceNorm,
     .eval = EvalInstanceNorm,
     .fp16 = {.kind = kRough},
     .range = RangeInstanceNorm},
    {.name = "l2_norm",
     .doc = "x / sqrt(sum of x * x over the last three dimensions + epsilon)",
     .signatures = {{{kIos15, "x:T epsilon:T!=1e-06 | T=fp16/fp32"},
                     {kIos17, "x:T epsilon:U!=1e-06 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferL2Norm,
     .eval = EvalL2Norm,
     .fp16 = {.kind = kRough},
     .range = RangeL2Norm},
    {.name = "layer_norm",
     .doc = "x normalised over axes (default: all), then scaled by gamma and shifted by beta",
     .signatures =
         {{{kIos15, "x:T axes:int32!=* gamma:T!? beta:T!? epsilon:T!=1e-05 | T=fp16/fp32"},
           {kIos17,
            "x:T axes:int32!=* gamma:U!? beta:U!? epsilon:U!=1e-05 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferLayerNorm,
     .eval = EvalLayerNorm,
     .default_value = LayerNormDefault,
     .fp16 = {.kind = kRough},
     .range = RangeLayerNorm},
    {.name = "local_response_norm",
     .doc = "x / (k + alpha / size * sum of x * x over size neighbouring channels)^beta",
     .signatures =
         {{{kIos15, "x:T size:int32! alpha:T!=0.0001 beta:T!=0.75 k:T!=1.0 | T=fp16/fp32"},
           {kIos17,
            "x:T size:int32! alpha:U!=0.0001 beta:U!=0.75 k:U!=1.0 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferLocalResponseNorm,
     .eval = EvalLocalResponseNorm,
     .fp16 = {.kind = kRough},
     .range = RangeLocalResponseNorm},
};

}  // namespace

std::span<const OpRow> NormalizationRows() { return kNormalizationRows; }

}  // namespace mlc
