#include "lib/ops/narrow_result.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/sliding_window.h"

namespace mlc {

namespace {

void CheckEqual(const OpContext& context, const Dim& a, const Dim& b, std::string_view what) {
  if (a.is_constant() && b.is_constant() && !(a == b))
    context.Fail("{}: {} and {}", what, a.ToString(), b.ToString());
}

int64_t Groups(const OpContext& context) {
  int64_t groups = context.Int("groups");
  if (groups < 1 || groups > INT32_MAX) context.Fail("groups is {}", groups);
  return groups;
}

void CheckDivisible(const OpContext& context, const Dim& channels, int64_t groups,
                    std::string_view what) {
  if (channels.is_constant() && channels.constant() % groups != 0)
    context.Fail("{} {} channels are not divisible by {} groups", channels.constant(), what,
                 groups);
}

void CheckBias(const OpContext& context, const Dim& channels) {
  if (!context.has("bias")) return;
  if (context.rank("bias") != 1) context.Fail("bias must have one dimension");
  CheckEqual(context, context.shape("bias")[0], channels,
             "bias elements and output channels differ");
}

void CheckPositive(const OpContext& context, const Shape& shape) {
  for (size_t i = 2; i < shape.size(); ++i)
    if (shape[i].is_constant() && (shape[i].constant() <= 0 || shape[i].constant() > INT32_MAX))
      context.Fail("spatial dimension {} would have size {}: the window does not fit", i - 2,
                   shape[i].constant());
}

void InferConv(InferContext& context) {
  Window window = ReadWindow(context);
  const Shape &x = context.shape("x"), &weight = context.shape("weight");
  int64_t groups = Groups(context);
  CheckDivisible(context, x[1], groups, "input");
  CheckDivisible(context, weight[0], groups, "output");
  CheckEqual(context, x[1], weight[1] * groups,
             "channels of x differ from channels of weight times groups");
  CheckBias(context, weight[0]);
  Shape shape{x[0], weight[0]};
  for (int i = 0; i < window.spatial(); ++i) shape.push_back(window.Out(i, x[i + 2]));
  CheckPositive(context, shape);
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalConv(EvalContext& context) {
  Tensor x_tensor = context.in("x"), weight_tensor = context.in("weight");
  Dims out = context.out_dims();
  Geometry g(ReadWindow(context), x_tensor.dims(), out);
  std::vector<double> x = x_tensor.Doubles(), weight = weight_tensor.Doubles(), bias(out[1], 0.0);
  if (context.has("bias")) bias = context.in("bias").Doubles();
  int64_t channels = x_tensor.dims()[1], per_group = weight_tensor.dims()[1];
  int64_t out_per_group = out[1] / context.Int("groups");
  int64_t plane = g.in[0] * g.in[1] * g.in[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  std::vector<double> y(ElementCount(out));
  size_t at = 0;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t c = 0; c < out[1]; ++c)
      for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
        for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
          for (int64_t o2 = 0; o2 < g.out[2]; ++o2) {
            auto [b0, e0] = g.Taps(0, o0);
            auto [b1, e1] = g.Taps(1, o1);
            auto [b2, e2] = g.Taps(2, o2);
            double sum = 0;
            for (int64_t i = 0; i < per_group; ++i) {
              const double* from = &x[(n * channels + c / out_per_group * per_group + i) * plane];
              const double* w = &weight[(c * per_group + i) * taps];
              for (int64_t k0 = b0; k0 < e0; ++k0)
                for (int64_t k1 = b1; k1 < e1; ++k1)
                  for (int64_t k2 = b2; k2 < e2; ++k2)
                    sum += from[(g.In(0, o0, k0) * g.in[1] + g.In(1, o1, k1)) * g.in[2] +
                                g.In(2, o2, k2)] *
                           w[(k0 * g.kernel[1] + k1) * g.kernel[2] + k2];
            }
            y[at++] = sum + bias[c];
          }
  context.Set(Store(context.out_dtype(), out, y));
}

void InferConvTranspose(InferContext& context) {
  Window window = ReadWindow(context);
  if (window.pad_type == "same_lower")
    context.Fail("conv_transpose does not support pad_type same_lower");
  const Shape &x = context.shape("x"), &weight = context.shape("weight");
  int64_t groups = Groups(context);
  CheckDivisible(context, x[1], groups, "input");
  CheckEqual(context, x[1], weight[0], "channels of x and first dimension of weight differ");
  Dim channels = weight[1] * groups;
  CheckBias(context, channels);
  Shape shape{x[0], channels};
  for (int i = 0; i < window.spatial(); ++i) {
    Dim full = (x[i + 2] - 1) * window.strides[i] + window.Extent(i);
    shape.push_back(window.pad_type == "same" ? x[i + 2] * window.strides[i]
                                              : full - window.pad[2 * i] - window.pad[2 * i + 1]);
  }
  if (context.has("output_shape")) {
    std::vector<int64_t> wanted = context.Ints("output_shape");
    if (wanted.size() != shape.size())
      context.Fail("output_shape has {} elements, expected {}", wanted.size(), shape.size());
    CheckEqual(context, wanted[0], x[0], "batch sizes of output_shape and x differ");
    CheckEqual(context, wanted[1], channels, "channels of output_shape and of the output differ");
    for (size_t i = 2; i < shape.size(); ++i) shape[i] = wanted[i];
  }
  CheckPositive(context, shape);
  context.Result(context.dtype("x"), std::move(shape));
}

// The products that contribute to an element are summed per tap over the channels, then over the
// taps.
void EvalConvTranspose(EvalContext& context) {
  Tensor x_tensor = context.in("x"), weight_tensor = context.in("weight");
  Dims out = context.out_dims();
  Window window = ReadWindow(context);
  Geometry g(window, x_tensor.dims(), out);
  std::vector<int64_t> crops = TransposedCrop(window, x_tensor.dims(), out);
  Geometry::Spatial crop{};
  for (size_t i = 0; i < crops.size(); ++i) crop[3 - crops.size() + i] = crops[i];
  std::vector<double> x = x_tensor.Doubles(), weight = weight_tensor.Doubles(),
                      y(ElementCount(out));
  int64_t channels = x_tensor.dims()[1], out_per_group = weight_tensor.dims()[1];
  int64_t per_group = channels / context.Int("groups"), plane = g.in[0] * g.in[1] * g.in[2],
          taps = g.kernel[0] * g.kernel[1] * g.kernel[2],
          out_plane = g.out[0] * g.out[1] * g.out[2];
  auto to = [&](int i, int64_t in, int64_t k) {
    return in * g.stride[i] + k * g.dilation[i] - crop[i];
  };
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t c = 0; c < out[1]; ++c) {
      const double *from = &x[(n * channels + c / out_per_group * per_group) * plane],
                   *w = &weight[c / out_per_group * per_group * out_per_group * taps +
                                c % out_per_group * taps];
      double* sums = &y[(n * out[1] + c) * out_plane];
      for (int64_t k0 = 0; k0 < g.kernel[0]; ++k0)
        for (int64_t k1 = 0; k1 < g.kernel[1]; ++k1)
          for (int64_t k2 = 0; k2 < g.kernel[2]; ++k2, ++w)
            for (int64_t i0 = 0; i0 < g.in[0]; ++i0)
              for (int64_t i1 = 0; i1 < g.in[1]; ++i1)
                for (int64_t i2 = 0; i2 < g.in[2]; ++i2) {
                  int64_t o0 = to(0, i0, k0), o1 = to(1, i1, k1), o2 = to(2, i2, k2);
                  if (o0 < 0 || o0 >= g.out[0] || o1 < 0 || o1 >= g.out[1] || o2 < 0 ||
                      o2 >= g.out[2])
                    continue;
                  double sum = 0;
                  const double* of_channel = from + (i0 * g.in[1] + i1) * g.in[2] + i2;
                  for (int64_t i = 0; i < per_group; ++i)
                    sum += of_channel[i * plane] * w[i * out_per_group * taps];
                  sums[(o0 * g.out[1] + o1) * g.out[2] + o2] += sum;
                }
    }
  if (context.has("bias")) {
    std::vector<double> bias = context.in("bias").Doubles();
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i / out_plane % out[1]];
  }
  context.Set(Store(context.out_dtype(), out, y));
}

// Windows that overlap the padding sum fewer products.
Interval RangeConv(const RangeContext& context, int) {
  double count = 1;
  for (int d = 1; d < context.rank("weight"); ++d) count *= context.Size("weight", d);
  Interval sum = Sum(Join(context.in("x") * context.in("weight"), {0, 0}), count);
  return context.has("bias") ? RoundedSum(sum, context.in("bias")) : sum;
}
// Each input channel contributes to an element through each tap at most once.
Interval RangeConvTranspose(const RangeContext& context, int) {
  double count = context.Size("weight", 0);
  for (int d = 2; d < context.rank("weight"); ++d) count *= context.Size("weight", d);
  Interval sum = Sum(Join(context.in("x") * context.in("weight"), {0, 0}), count);
  return context.has("bias") ? RoundedSum(sum, context.in("bias")) : sum;
}

std::vector<WeightOperand> WeightsOfConv(const OpContext&) { return {{"weight", 0, 1}}; }
std::vector<WeightOperand> WeightsOfConvTranspose(const OpContext&) { return {{"weight", 1, 0}}; }

constexpr OpRow kConvRows[] = {
    {.name = "conv",
     .doc = "convolution of [n, channels, 1 to 3 spatial dimensions] with weight [out, channels / "
            "groups, kernel]",
     .signatures = {{{kIos15,
                      "x:T weight:T bias:T!? strides:int32!=* pad_type:string!=valid pad:int32!=* "
                      "dilations:int32!=* groups:int32!=1 | T=fp16/fp32"},
                     {kIos17,
                      "x:T weight:U bias:U? strides:int32!=* pad_type:string!=valid pad:int32!=* "
                      "dilations:int32!=* groups:int32!=1 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferConv,
     .eval = EvalConv,
     .default_value = WindowDefault,
     .fp16 = {.needs = kWholeSums, .carries = kLogarithms, .kind = kProduct | kMain},
     .work = WorkOfWeight,
     .weights = WeightsOfConv,
     .eight_bit = EightBit::kLayer,
     .range = RangeConv},
    {.name = "conv_transpose",
     .doc = "transposed convolution with weight [channels, out / groups, kernel], cropped or "
            "padded to output_shape",
     .signatures =
         {{{kIos15,
            "x:T weight:T! bias:T!? pad:int32!=* output_shape:int32!? pad_type:string!=valid "
            "strides:int32!=* dilations:int32!=* groups:int32!=1 | T=fp16/fp32"},
           {kIos17,
            "x:T weight:U bias:U? pad:int32!=* output_shape:int32!? pad_type:string!=valid "
            "strides:int32!=* dilations:int32!=* groups:int32!=1 | T=fp16/fp32 U=fp16/fp32"}}},
     .infer = InferConvTranspose,
     .eval = EvalConvTranspose,
     .default_value = WindowDefault,
     .fp16 = {.kind = kProduct | kMain},
     .work = WorkOfWeight,
     .weights = WeightsOfConvTranspose,
     .range = RangeConvTranspose},
};

}  // namespace

std::span<const OpRow> ConvRows() { return kConvRows; }

}  // namespace mlc
