#include <cmath>
#include <limits>

#include "lib/ops/narrow_result.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/sliding_window.h"

namespace mlc {

namespace {

void InferPool(InferContext& context) {
  Window window = ReadWindow(context);
  Shape shape = context.shape("x");
  for (int i = 0; i < window.spatial(); ++i) {
    shape[i + 2] = window.Out(i, shape[i + 2]);
    if (shape[i + 2].is_constant() &&
        (shape[i + 2].constant() <= 0 || shape[i + 2].constant() > INT32_MAX))
      context.Fail("spatial dimension {} would have size {}: the window does not fit", i,
                   shape[i + 2].constant());
  }
  context.Result(context.dtype("x"), std::move(shape));
}

void InferL2Pool(InferContext& context) {
  if (context.rank("x") > 4) context.Fail("expected one or two spatial dimensions");
  InferPool(context);
}

// y = finish(accumulator, divisor), where step(accumulator, element) folds the elements of the
// window inside the input, starting from `first`, and the divisor counts the elements of the window
// inside the input and its padding.
template <class Step, class Finish>
void EvalPool(EvalContext& context, double first, Step step, Finish finish) {
  Tensor x_tensor = context.in("x");
  Dims out = context.out_dims();
  Window window = ReadWindow(context);
  Geometry g(window, x_tensor.dims(), out);
  int lead = 3 - window.spatial();
  auto padded_taps = [&](int i, int64_t o) {
    return window.PaddedTaps(i - lead, g.in[i], g.In(i, o, 0));
  };
  std::vector<double> x = x_tensor.Doubles(), y(ElementCount(out));
  int64_t plane = g.in[0] * g.in[1] * g.in[2];
  size_t at = 0;
  for (int64_t c = 0; c < out[0] * out[1]; ++c)
    for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
      for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
        for (int64_t o2 = 0; o2 < g.out[2]; ++o2) {
          auto [b0, e0] = g.Taps(0, o0);
          auto [b1, e1] = g.Taps(1, o1);
          auto [b2, e2] = g.Taps(2, o2);
          double value = first;
          for (int64_t k0 = b0; k0 < e0; ++k0)
            for (int64_t k1 = b1; k1 < e1; ++k1)
              for (int64_t k2 = b2; k2 < e2; ++k2)
                value = step(value,
                             x[c * plane + (g.In(0, o0, k0) * g.in[1] + g.In(1, o1, k1)) * g.in[2] +
                               g.In(2, o2, k2)]);
          double inside = static_cast<double>((e0 - b0) * (e1 - b1) * (e2 - b2));
          double padded =
              static_cast<double>(padded_taps(0, o0) * padded_taps(1, o1) * padded_taps(2, o2));
          y[at++] = finish(value, inside, padded);
        }
  context.Set(Store(context.out_dtype(), out, y));
}

void EvalAvgPool(EvalContext& context) {
  bool exclude = context.Bool("exclude_padding_from_average");
  EvalPool(
      context, 0.0, [](double sum, double x) { return sum + x; },
      [&](double sum, double inside, double padded) { return sum / (exclude ? inside : padded); });
}

void EvalL2Pool(EvalContext& context) {
  EvalPool(
      context, 0.0, [](double sum, double x) { return sum + x * x; },
      [](double sum, double, double) { return std::sqrt(sum); });
}

void EvalMaxPool(EvalContext& context) {
  EvalPool(
      context, -std::numeric_limits<double>::infinity(),
      [](double max, double x) { return MaximumOf(max, x); },
      [](double max, double, double) { return max; });
}

Interval RangeL2Pool(const RangeContext& context, int) {
  Tensor kernel = context.value("kernel_sizes");
  double count = kernel ? 1 : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; kernel && i < kernel.size(); ++i) count *= static_cast<double>(kernel.Int(i));
  return {0, std::sqrt(Sum(Square(context.in("x")), 0, count).high)};
}

constexpr OpRow kPoolRows[] = {
    {.name = "avg_pool",
     .doc = "average over windows of the spatial dimensions; padding counts unless excluded",
     .signatures =
         {{{kIos15,
            "exclude_padding_from_average:bool!=false x:T kernel_sizes:int32! strides:int32!=* "
            "pad_type:string! pad:int32!=* ceil_mode:bool!=false | T=fp16/fp32"}}},
     .infer = InferPool,
     .eval = EvalAvgPool,
     .default_value = WindowDefault,
     .sums = {.of = Sums::kElements, .mean = true},
     .eight_bit = EightBit::kJoin,
     .homogeneous = true,
     .range = RangeOfXOrZero},
    {.name = "l2_pool",
     .doc = "square root of the sum of squares over windows of the spatial dimensions",
     .signatures = {{{kIos15,
                      "x:T kernel_sizes:int32! strides:int32!=* pad_type:string! pad:int32!=* "
                      "ceil_mode:bool!=false | T=fp16/fp32"}}},
     .infer = InferL2Pool,
     .eval = EvalL2Pool,
     .default_value = WindowDefault,
     .sums = {.of = Sums::kSquares, .root = true},
     .range = RangeL2Pool},
    {.name = "max_pool",
     .doc = "maximum over windows of the spatial dimensions; padding is ignored",
     .signatures = {{{kIos15,
                      "x:T kernel_sizes:int32! strides:int32!=* pad_type:string! pad:int32!=* "
                      "ceil_mode:bool!=false | T=fp16/fp32"}}},
     .infer = InferPool,
     .eval = EvalMaxPool,
     .default_value = WindowDefault,
     .eight_bit = EightBit::kJoin,
     .homogeneous = true,
     .range = RangeOfX},
};

}  // namespace

std::span<const OpRow> PoolRows() { return kPoolRows; }

}  // namespace mlc
