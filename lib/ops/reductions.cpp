#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// Flags the reduced dimensions of x: those in axes, or all if it is omitted.
std::vector<bool> Reduced(const OpContext& context) {
  int rank = context.rank("x");
  std::vector<bool> reduced(rank, !context.has("axes"));
  if (context.has("axes"))
    for (int64_t axis : context.Ints("axes")) reduced[OpContext::Axis(axis, rank)] = true;
  return reduced;
}

Shape ReducedShape(const OpContext& context, const std::vector<bool>& reduced) {
  bool keep = context.Bool("keep_dims");
  Shape shape;
  for (size_t i = 0; i < reduced.size(); ++i)
    if (!reduced[i])
      shape.push_back(context.shape("x")[i]);
    else if (keep)
      shape.push_back(1);
  return shape;
}

using OnDims = Dim (*)(const Dim& a, const Dim& b);
Dim AddDims(const Dim& a, const Dim& b) { return a + b; }
Dim MulDims(const Dim& a, const Dim& b) { return a * b; }
Dim MaximumDims(const Dim& a, const Dim& b) { return Max(a, b); }
Dim MinimumDims(const Dim& a, const Dim& b) { return 0 - Max(0 - a, 0 - b); }

// kOnDims combines known sizes, e.g. to the product of a shape.
template <OnDims kOnDims = nullptr>
void InferReduction(InferContext& context) {
  std::vector<bool> reduced = Reduced(context);
  context.Result(context.dtype("x"), ReducedShape(context, reduced));
  if constexpr (kOnDims != nullptr) {
    if (reduced != std::vector<bool>{true} || context.value("x")) return;
    auto elements = WholeElements(context, "x");
    if (elements && !elements->empty())
      context.Elements(
          {std::accumulate(elements->begin() + 1, elements->end(), elements->front(), kOnDims)});
  }
}

// Iterates over x: the inner loop over the reduced dimensions, the outer loop over the others.
struct Split {
  Dims outer, outer_strides, inner, inner_strides;
};
Split SplitOf(const Dims& dims, const std::vector<bool>& reduced) {
  Split split;
  Dims strides = StridesOf(dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    (reduced[i] ? split.inner : split.outer).push_back(dims[i]);
    (reduced[i] ? split.inner_strides : split.outer_strides).push_back(strides[i]);
  }
  return split;
}

// A reduction is a struct with W begin, Step(a, x) for each element in row-major order, and End(a,
// count). A double returned by End is truncated for integers, like NumPy's conversion back to the
// input's dtype.
template <class W>
struct SumOf {
  static W Begin() { return 0; }
  static W Step(W a, W x) { return W(Wrapping<W>(a) + Wrapping<W>(x)); }
  static W End(W a, int64_t) { return a; }
};
template <class W>
struct L1Of : SumOf<W> {
  static W Step(W a, W x) { return SumOf<W>::Step(a, MagnitudeOf(x)); }
};
template <class W>
struct SumSquareOf : SumOf<W> {
  static W Step(W a, W x) { return W(Wrapping<W>(a) + Wrapping<W>(x) * Wrapping<W>(x)); }
};
template <class W>
struct L2Of : SumSquareOf<W> {
  static double End(W a, int64_t) { return std::sqrt(static_cast<double>(a)); }
};
template <class W>
struct LogSumOf : SumOf<W> {
  static double End(W a, int64_t) { return std::log(static_cast<double>(a)); }
};
template <class W>
struct MeanOf : SumOf<W> {
  static double End(W a, int64_t count) {
    return static_cast<double>(a) / static_cast<double>(count);
  }
};
template <class W>
struct ProdOf {
  static W Begin() { return 1; }
  static W Step(W a, W x) { return W(Wrapping<W>(a) * Wrapping<W>(x)); }
  static W End(W a, int64_t) { return a; }
};

// Converts the final value of a reduction to T; NaN and values out of range become the nearest
// representable number.
template <class T, class W>
T Ended(W value) {
  if constexpr (std::is_same_v<W, double> && !kIsFloat<T> && !std::is_same_v<T, bool>) {
    if (!(value > static_cast<double>(std::numeric_limits<T>::lowest())))
      return std::isnan(value) ? T(0) : std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
  }
  return Narrow<T>(value);
}

// Calls f(offset) for each element in row-major order. It is not a template, because the loops would
// be compiled for every reduction of every dtype.
void ForEachOffset(const Dims& dims, const Dims& strides, const std::function<void(int64_t)>& f) {
  Walk<1>(dims, {strides}, f);
}

// Sets each element of the result to reduce(T{}, each, count), where each(f) calls f(x) for the
// `count` elements of type T that are reduced to it.
template <class F>
void EvalReduced(EvalContext& context, F&& reduce) {
  Tensor x = context.in("x");
  Split split = SplitOf(x.dims(), Reduced(context));
  int64_t count = ElementCount(split.inner), length = 1, stride = 0;
  if (!split.inner.empty()) {
    length = split.inner.back(), stride = split.inner_strides.back();
    split.inner.pop_back(), split.inner_strides.pop_back();
  }
  context.Set(Dispatch(x.dtype(), [&]<class T>(T zero) {
    Out<T> out(context.out_dims());
    Pin<T> in = x.data<T>();
    T* to = out.data.data();
    ForEachOffset(split.outer, split.outer_strides, [&](int64_t base) {
      auto each = [&](auto&& f) {
        auto row = [&](int64_t offset) {
          const T* elements = in.data() + base + offset;
          for (int64_t i = 0; i < length; ++i) f(elements[i * stride]);
        };
        ForEachOffset(split.inner, split.inner_strides, std::ref(row));
      };
      *to++ = reduce(zero, each, count);
    });
    return out.tensor;
  }));
}

template <template <class> class Reduction>
void EvalReduction(EvalContext& context) {
  EvalReduced(context, []<class T>(T, auto&& each, int64_t count) {
    using R = Reduction<Wide<T>>;
    Wide<T> a = R::Begin();
    each([&](T x) { a = R::Step(a, Widen(x)); });
    return Ended<T>(R::End(a, count));
  });
}

// Extrema start from the limit of the dtype, which is also the result for an empty reduction (ONNX:
// "minus infinity ... or the minimum value of the data type").
template <class T>
Wide<T> Lowest() {
  if constexpr (kIsFloat<T>)
    return -std::numeric_limits<double>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}
template <class T>
Wide<T> Highest() {
  if constexpr (kIsFloat<T>)
    return std::numeric_limits<double>::infinity();
  else
    return std::numeric_limits<T>::max();
}

template <bool kMaximum>
void EvalExtreme(EvalContext& context) {
  EvalReduced(context, []<class T>(T, auto&& each, int64_t) {
    Wide<T> best = kMaximum ? Lowest<T>() : Highest<T>();
    each([&](T x) {
      Wide<T> v = Widen(x);
      best = kMaximum ? MaximumOf(best, v) : MinimumOf(best, v);
    });
    return Narrow<T>(best);
  });
}

void EvalLogSumExp(EvalContext& context) {
  EvalReduced(context, []<class T>(T, auto&& each, int64_t) {
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    each([&](T x) { greatest = MaximumOf(greatest, static_cast<double>(x)); });
    each([&](T x) { sum += std::exp(static_cast<double>(x) - greatest); });
    // An infinite maximum is the result; inf - inf would turn it into NaN.
    return Ended<T>(std::isinf(greatest) ? greatest : greatest + std::log(sum));
  });
}

void InferArg(InferContext& context) {
  int rank = context.rank("x");
  int axis = OpContext::Axis(context.Int("axis"), rank);
  std::vector<bool> reduced(rank, false);
  reduced[axis] = true;
  std::optional<DType> dtype = ParseDType(context.String("output_dtype"));
  if (dtype != DType::kInt32 && dtype != DType::kUint16)
    context.Fail("output_dtype is \"{}\", expected int32 or uint16",
                 context.String("output_dtype"));
  if (context.shape("x")[axis] == Dim(0))
    context.Fail("x is {}: axis {} is empty", context.type("x").ToString(), axis);
  context.Result(*dtype, ReducedShape(context, reduced));
}

// The first of equal elements; the first NaN takes precedence over numbers, as in NumPy.
template <bool kMaximum>
void EvalArg(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  std::vector<bool> reduced(x.rank(), false);
  reduced[axis] = true;
  Split split = SplitOf(x.dims(), reduced);
  std::vector<int64_t> indices;
  Dispatch(x.dtype(), [&]<class T>(T) {
    Pin<T> in = x.data<T>();
    Walk<1>(split.outer, {split.outer_strides}, [&](int64_t base) {
      int64_t best = 0;
      Wide<T> value = Widen(in[base]);
      for (int64_t i = 1; i < split.inner[0] && value == value; ++i) {
        Wide<T> v = Widen(in[base + i * split.inner_strides[0]]);
        if (!(kMaximum ? v > value : v < value) && v == v) continue;
        best = i;
        value = v;
      }
      indices.push_back(best);
    });
  });
  context.Set(Tensor::Of<int64_t>(context.out_dims(), indices).Cast(context.out_dtype()));
}

constexpr std::array<FormRow, 4> kAxes = {
    {{kIos15, "x:T axes:int32!? keep_dims:bool!=false | T=fp16/fp32/int32"}}};
constexpr std::array<FormRow, 4> kAxis = {
    {{kIos15, "x:T axis:int32!=-1 keep_dims:bool!=false | T=fp16/fp32/int32"},
     {kIos17,
      "x:T axis:int32!=-1 keep_dims:bool!=false output_dtype:string!=int32 | T=fp16/fp32/int32"}}};

Interval RangeL1(const RangeContext& context, int) {
  return Sum(Magnitude(context.in("x")), context.Reduced("x"));
}
Interval RangeSumSquare(const RangeContext& context, int) {
  return Sum(Square(context.in("x")), context.Reduced("x"));
}
Interval RangeL2(const RangeContext& context, int result) {
  Interval squares = RangeSumSquare(context, result);
  Interval root = {std::sqrt(squares.low), std::sqrt(squares.high)};
  return IsFloat(context.dtype("x")) ? root : Interval{std::trunc(root.low), std::trunc(root.high)};
}
Interval RangeSum(const RangeContext& context, int) {
  return Sum(context.in("x"), context.Reduced("x"));
}
// Integer results are truncated; the logarithm of 0 is the minimum of the dtype.
Interval RangeLogSum(const RangeContext& context, int) {
  if (!IsFloat(context.dtype("x"))) return IntervalOf(context.dtype("x"));
  Interval sum = RangeSum(context, 0);
  return {std::log(std::max(sum.low, 0.0)), std::log(std::max(sum.high, 0.0))};
}
Interval RangeLogSumExp(const RangeContext& context, int) {
  Interval x = context.in("x");
  if (!IsFloat(context.dtype("x"))) return IntervalOf(context.dtype("x"));
  return Sum({x.low, x.high + std::log(context.Reduced("x"))}, 1);
}
// A sum of integers may wrap before the division.
Interval RangeMean(const RangeContext& context, int) {
  Interval x = context.in("x");
  if (IsFloat(context.dtype("x"))) return Sum(x, 1);
  return {std::trunc(x.low), std::trunc(x.high)};
}
Interval RangeProd(const RangeContext& context, int) {
  Interval x = context.in("x");
  double count = context.Reduced("x"), size = std::max(std::fabs(x.low), std::fabs(x.high));
  if (std::isinf(count)) return x.low >= 0 && x.high <= 1 ? Interval{0, 1} : Interval();
  if (x.low >= 0) return {std::pow(x.low, count), std::pow(x.high, count)};
  double most = std::pow(size, count);
  return {-most, most};
}

template <EvalFn kEval, OnDims kOnDims = nullptr>
constexpr OpRow Reduction(OpRow row) {
  row.signatures = kAxes;
  row.infer = InferReduction<kOnDims>;
  row.eval = kEval;
  row.layout = {.data = {"x"}, .axes = "axes"};
  return row;
}

constexpr OpRow kReductionRows[] = {
    {.name = "reduce_argmax",
     .doc = "index of the largest element along axis; the first if several are equal",
     .signatures = kAxis,
     .infer = InferArg,
     .eval = EvalArg<true>,
     .layout = {.data = {"x"}, .axes = "axis"},
     .fp16 = {.kind = kRough},
     .range = RangeOfPlaces},
    {.name = "reduce_argmin",
     .doc = "index of the smallest element along axis; the first if several are equal",
     .signatures = kAxis,
     .infer = InferArg,
     .eval = EvalArg<false>,
     .layout = {.data = {"x"}, .axes = "axis"},
     .fp16 = {.kind = kRough},
     .range = RangeOfPlaces},
    Reduction<EvalReduction<L1Of>>({.name = "reduce_l1_norm",
                                    .doc = "sum of |x| over axes",
                                    .sums = {.of = Sums::kMagnitudes},
                                    .fp16 = {.kind = kRough},
                                    .range = RangeL1}),
    Reduction<EvalReduction<L2Of>>({.name = "reduce_l2_norm",
                                    .doc = "square root of the sum of x * x over axes",
                                    .sums = {.of = Sums::kSquares, .root = true},
                                    .fp16 = {.carries = kLogarithms, .kind = kRough},
                                    .range = RangeL2}),
    Reduction<EvalReduction<LogSumOf>>({.name = "reduce_log_sum",
                                        .doc = "logarithm of the sum of x over axes",
                                        .fp16 = {.needs = kLogarithms, .kind = kRough},
                                        .range = RangeLogSum}),
    Reduction<EvalLogSumExp>({.name = "reduce_log_sum_exp",
                              .doc = "logarithm of the sum of e^x over axes",
                              .fp16 = {.kind = kRough},
                              .range = RangeLogSumExp}),
    Reduction<EvalExtreme<true>, MaximumDims>(
        {.name = "reduce_max",
         .doc = "maximum over axes; NaN if any element is NaN",
         .fp16 = {.carries = kLogarithms | kSelections | kSteps, .kind = kRough},
         .range = RangeOfX,
         .constraints = {{{"x", ResultConstraint}}}}),
    Reduction<EvalReduction<MeanOf>>({.name = "reduce_mean",
                                      .doc = "mean of x over axes",
                                      .sums = {.of = Sums::kElements, .mean = true},
                                      .fp16 = {.carries = kLogarithms, .kind = kRough},
                                      .range = RangeMean}),
    Reduction<EvalExtreme<false>, MinimumDims>(
        {.name = "reduce_min",
         .doc = "minimum over axes; NaN if any element is NaN",
         .fp16 = {.carries = kSteps, .kind = kRough},
         .range = RangeOfX,
         .constraints = {{{"x", ResultConstraint}}}}),
    Reduction<EvalReduction<ProdOf>, MulDims>({.name = "reduce_prod",
                                               .doc = "product of x over axes",
                                               .fp16 = {.kind = kRough},
                                               .range = RangeProd}),
    Reduction<EvalReduction<SumOf>, AddDims>({.name = "reduce_sum",
                                              .doc = "sum of x over axes",
                                              .sums = {.of = Sums::kElements},
                                              .fp16 = {.carries = kLogarithms, .kind = kRough},
                                              .range = RangeSum,
                                              .constraints = {{{"x", ConstraintOfSums}}}}),
    Reduction<EvalReduction<SumSquareOf>>({.name = "reduce_sum_square",
                                           .doc = "sum of x * x over axes",
                                           .sums = {.of = Sums::kSquares},
                                           .fp16 = {.carries = kLogarithms, .kind = kRough},
                                           .range = RangeSumSquare}),
};

}  // namespace

std::span<const OpRow> ReductionRows() { return kReductionRows; }

}  // namespace mlc
