#include <algorithm>
#include <cmath>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/strided_view.h"

namespace mlc {

namespace {

// Vectors up to this length have tracked elements.
constexpr int64_t kMaxElements = 4096;

void InferShape(InferContext& context) {
  context.Result(DType::kInt32, {Dim(context.rank("x"))});
  context.Elements(context.shape("x"));
}

void EvalShape(EvalContext& context) {
  context.Set(Tensor::Vector(context.in("x").dims()).Cast(DType::kInt32));
}

// The dtype of `value`, or of its default if it is omitted.
DType ValueType(const OpContext& context, std::string_view name) {
  return context.has(name) ? context.dtype(name) : context.value(name).dtype();
}

void InferFill(InferContext& context) {
  VectorLength(context, "shape");
  Shape dims;
  for (const std::optional<Dim>& part : context.Parts("shape"))
    dims.push_back(part ? *part : context.Fresh("fill"));
  for (const Dim& dim : dims)
    if (dim.is_constant() && dim.constant() < 0)
      context.Fail("invalid dimension {} in shape", dim.constant());
  DType dtype = ValueType(context, "value");
  context.Result(dtype, dims);
  if (dims.size() > 1 || !IsStatic(dims) || IsFloat(dtype)) return;
  int64_t count = ElementCount(StaticDims(dims));
  if (count <= kMaxElements) context.Elements(std::vector<Dim>(count, Dim(context.Int("value"))));
}

void InferFillLike(InferContext& context) {
  context.Result(ValueType(context, "value"), context.shape("ref_tensor"));
}

void EvalFill(EvalContext& context) {
  Tensor value = context.in("value");
  Dims dims = context.out_dims();
  if (value.size() != 1) context.Fail("value is not a scalar");
  CheckResultSize(context, dims);
  context.Set(StridedView(value, dims, Dims(dims.size(), 0)));
}

// The number of elements start, start + step, ... before end.
int64_t RangeLength(const OpContext& context, const Tensor& start, const Tensor& end,
                    const Tensor& step) {
  constexpr int64_t kMaxLength = int64_t{1} << 31;
  if (start.size() != 1 || end.size() != 1 || step.size() != 1)
    context.Fail("start, end and step must be scalars");
  double length;
  if (IsFloat(start.dtype())) {
    length = std::ceil((end.Double(0) - start.Double(0)) / step.Double(0));
    if (step.Double(0) == 0 || std::isnan(length))
      context.Fail("invalid range from {} to {} by {}", start.Double(0), end.Double(0),
                   step.Double(0));
  } else {
    __int128 by = step.Int(0), distance = static_cast<__int128>(end.Int(0)) - start.Int(0);
    if (by == 0) context.Fail("step is 0");
    if (by < 0) {
      by = -by;
      distance = -distance;
    }
    length = static_cast<double>((distance + by - 1) / by);
  }
  if (length > static_cast<double>(kMaxLength))
    throw Error("resource-limit", "range_1d: the result has {:.0f} elements, which is too many",
                length);
  return length < 0 ? 0 : static_cast<int64_t>(length);
}

void InferRange(InferContext& context) {
  DType dtype = context.dtype("start");
  for (const char* name : {"end", "step"})
    if (context.dtype(name) != dtype)
      context.Fail("start is {} and {} is {}, expected the same element type", Name(dtype), name,
                   Name(context.dtype(name)));
  Tensor start = context.value("start"), end = context.value("end"), step = context.value("step");
  auto scalar = [&](std::string_view name) -> std::optional<Dim> {
    auto elements = WholeElements(context, name);
    if (!elements || elements->size() != 1) return std::nullopt;
    return elements->front();
  };
  std::optional<Dim> first = scalar("start"), last = scalar("end"), by = scalar("step"), length;
  if (start && end && step) {
    length = RangeLength(context, start, end, step);
  } else if (first && last && by) {
    if (*by == Dim(0)) context.Fail("step is 0");
    Dim::Range sign = context.Bounds(*by);
    if (sign.low > 0) length = Max(CeilDiv(*last - *first, *by), Dim(0));
    if (sign.high < 0) length = Max(CeilDiv(*first - *last, Dim(0) - *by), Dim(0));
  }
  context.Result(dtype, {length ? *length : context.Fresh("range")});
  if (!first || !by || !length || !length->is_constant() || length->constant() > kMaxElements)
    return;
  constexpr int64_t kFar = int64_t{1} << 40;  // not a size; sums might overflow
  for (const Dim& dim : {*first, *by})
    if (dim.is_constant() && (dim.constant() > kFar || dim.constant() < -kFar)) return;
  std::vector<Dim> elements;
  for (int64_t i = 0; i < length->constant(); ++i) elements.push_back(*first + Dim(i) * *by);
  context.Elements(std::move(elements));
}

void EvalRange(EvalContext& context) {
  Tensor start = context.in("start"), step = context.in("step");
  int64_t length = RangeLength(context, start, context.in("end"), step);
  context.Set(Dispatch(start.dtype(), [&]<class T>(T) {
    Out<T> out({length});
    if constexpr (kIsFloat<T>) {
      double first = start.Double(0), by = step.Double(0);
      for (int64_t i = 0; i < length; ++i)
        out.data[i] = Narrow<T>(first + static_cast<double>(i) * by);
    } else {
      uint64_t first = start.Int(0), by = step.Int(0);
      for (int64_t i = 0; i < length; ++i) out.data[i] = Narrow<T>(first + i * by);
    }
    return out.tensor;
  }));
}

int OneHotAxis(const OpContext& context) {
  return OpContext::Axis(context.Int("axis"), context.rank("indices") + 1);
}

void InferOneHot(InferContext& context) {
  Shape shape = context.shape("indices");
  auto size = context.Elements("one_hot_vector_size");
  if (size && size->size() != 1) context.Fail("one_hot_vector_size is not a scalar");
  Dim depth = size ? size->front() : context.Fresh("one_hot");
  if (depth.is_constant() && depth.constant() < 1)
    context.Fail("one_hot_vector_size is {}, expected 1 or more", depth.constant());
  DType dtype = ValueType(context, context.has("on_value") ? "on_value" : "off_value");
  if (context.has("on_value") && context.has("off_value") && context.dtype("off_value") != dtype)
    context.Fail("on_value is {}, but off_value is {}", Name(dtype),
                 Name(context.dtype("off_value")));
  shape.insert(shape.begin() + OneHotAxis(context), depth);
  context.Result(dtype, std::move(shape));
}

// Indices outside [0, size) give a vector of off_value.
void EvalOneHot(EvalContext& context) {
  Dims dims = context.out_dims();
  DType dtype = context.out_dtype();
  CheckResultSize(context, dims);
  Tensor on = context.in("on_value").Cast(dtype), off = context.in("off_value").Cast(dtype);
  if (on.size() != 1 || off.size() != 1) context.Fail("on_value or off_value is not a scalar");
  Tensor indices = context.in("indices");
  int axis = OneHotAxis(context);
  int64_t depth = dims[axis], inner = StridesOf(dims)[axis];
  context.Set(DispatchWidth(dtype, [&]<class Word>(Word) {
    std::byte* bytes = nullptr;
    Tensor out = Tensor::Allocate(dtype, dims, &bytes);
    Word* to = reinterpret_cast<Word*>(bytes);
    std::fill_n(to, out.size(), off.data<Word>()[0]);
    for (int64_t i = 0; i < indices.size(); ++i) {
      int64_t index = indices.Int(i);
      if (index >= 0 && index < depth)
        to[(i / inner * depth + index) * inner + i % inner] = on.data<Word>()[0];
    }
    return out;
  }));
}

void InferCumsum(InferContext& context) {
  OpContext::Axis(context.Int("axis"), context.rank("x"));
  context.Result(context.type("x"));
}

void EvalCumsum(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  bool exclusive = context.Bool("exclusive"), reverse = context.Bool("reverse");
  int64_t n = x.dims()[axis], inner = StridesOf(x.dims())[axis];
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    using Sum = std::conditional_t<kIsFloat<T>, double, uint64_t>;  // integers wrap
    Out<T> out(x.dims());
    Pin<T> in = x.data<T>();
    for (int64_t line = 0; n > 0 && line < x.size() / n; ++line) {
      int64_t base = line / inner * n * inner + line % inner;
      Sum sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        int64_t at = base + (reverse ? n - 1 - k : k) * inner;
        Sum before = sum;
        sum += static_cast<Sum>(Widen(in[at]));
        out.data[at] = Narrow<T>(exclusive ? before : sum);
      }
    }
    return out.tensor;
  }));
}

void InferBandPart(InferContext& context) {
  if (context.rank("x") < 2)
    context.Fail("x is {}, expected at least rank 2", context.type("x").ToString());
  context.Int("lower");
  context.Int("upper");
  context.Result(context.type("x"));
}

void EvalBandPart(EvalContext& context) {
  Tensor x = context.in("x");
  int64_t lower = context.Int("lower"), upper = context.Int("upper");
  int64_t rows = x.dims()[x.rank() - 2], columns = x.dims()[x.rank() - 1];
  context.Set(DispatchWidth(x.dtype(), [&]<class Word>(Word) {
    std::byte* bytes = nullptr;
    Tensor out = Tensor::Allocate(x.dtype(), x.dims(), &bytes);
    Word* to = reinterpret_cast<Word*>(bytes);
    Pin<Word> from = x.data<Word>();
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t row = i / columns % rows, column = i % columns;
      bool keep = (lower < 0 || row - column <= lower) && (upper < 0 || column - row <= upper);
      to[i] = keep ? from[i] : Word{0};
    }
    return out;
  }));
}

// Positions of the nonzero elements of x in row-major order.
std::vector<int64_t> NonZeroPositions(const Tensor& x) {
  return Dispatch(x.dtype(), [&]<class T>(T) {
    std::vector<int64_t> positions;
    Pin<T> in = x.data<T>();
    for (size_t i = 0; i < in.size(); ++i)
      if (Widen(in[i]) != 0) positions.push_back(static_cast<int64_t>(i));
    return positions;
  });
}

void InferNonZero(InferContext& context) {
  Tensor x = context.value("x");
  Dim count = x ? Dim(static_cast<int64_t>(NonZeroPositions(x).size())) : context.Fresh("non_zero");
  context.Result(DType::kInt32, {count, Dim(context.rank("x"))});
}

void EvalNonZero(EvalContext& context) {
  Tensor x = context.in("x");
  std::vector<int64_t> positions = NonZeroPositions(x);
  Dims strides = StridesOf(x.dims());
  Out<int32_t> out({static_cast<int64_t>(positions.size()), x.rank()});
  int32_t* to = out.data.data();
  for (int64_t position : positions)
    for (int d = 0; d < x.rank(); ++d)
      *to++ = static_cast<int32_t>(position / strides[d] % x.dims()[d]);
  context.Set(out.tensor);
}

// Sums of up to all elements along the axis; an exclusive sum may have no terms.
Interval RangeCumsum(const RangeContext& context, int) {
  int rank = context.rank("x");
  std::optional<double> axis = context.Number("axis"), exclusive = context.Number("exclusive");
  double most = axis && rank > 0
                    ? context.Size("x", OpContext::Axis(static_cast<int64_t>(*axis), rank))
                    : std::numeric_limits<double>::infinity();
  return Sum(context.in("x"), exclusive == 0.0 ? 1 : 0, most);
}
Interval RangeFill(const RangeContext& context, int) { return context.in("value"); }
Interval RangeNonZero(const RangeContext& context, int result) {
  double most = 0;
  for (int d = 0; d < context.rank("x"); ++d) most = std::max(most, context.Size("x", d) - 1);
  return Counts(0, most, context.out_dtype(result));
}
Interval RangeOneHot(const RangeContext& context, int) {
  return Join(context.in("on_value"), context.in("off_value"));
}
// For a positive step, from start to below end; the last element is known if start and step are.
Interval RangeRange(const RangeContext& context, int result) {
  Interval start = context.in("start"), end = context.in("end"), step = context.in("step");
  if (!(step.low > 0)) return Join(start, end);
  double last = IsFloat(context.out_dtype(result)) ? end.high : end.high - 1;
  if (start.low == start.high && step.low == step.high && std::isfinite(end.high))
    last = start.low + (std::ceil((end.high - start.low) / step.low) - 1) * step.low;
  return {start.low, std::max(start.low, last)};
}
Interval RangeShape(const RangeContext& context, int result) {
  Interval sizes;
  for (int d = 0; d < context.rank("x"); ++d) {
    double size = context.Size("x", d);
    Interval own = Counts(std::isinf(size) ? 0 : size, size, context.out_dtype(result));
    sizes = d == 0 ? own : Join(sizes, own);
  }
  return sizes;
}

OperandConstraint WantOfClasses(const ConstraintContext& context) {
  std::optional<Interval> depth = context.Known("one_hot_vector_size");
  if (!depth) return {};
  return OperandConstraint::Bounded(0, depth->low - 1,
                                    fmt::format("classes of {}", Quoted(context.op)));
}

constexpr OpRow kTensorRows[] = {
    {.name = "band_part",
     .doc = "x with zeros outside a band of `lower` sub- and `upper` superdiagonals; negative: "
            "keep all",
     .signatures = {{{kIos15, "x:T lower:int32!=-1 upper:int32!=-1 | T=fp16/fp32/int32/bool"}}},
     .infer = InferBandPart,
     .eval = EvalBandPart,
     .range = RangeOfXOrZero},
    {.name = "cumsum",
     .doc = "cumulative sum along axis; exclusive: without the element itself",
     .signatures =
         {{{kIos15,
            "x:T axis:int32!=0 exclusive:bool!=false reverse:bool!=false | T=fp16/fp32/int32"}}},
     .infer = InferCumsum,
     .eval = EvalCumsum,
     .layout = {.data = {"x"}, .axes = "axis"},
     .fp16 = {.carries = kPlaces, .kind = kRough},
     .range = RangeCumsum,
     .constraints = {{{"x", ConstraintOfSums}}}},
    {.name = "fill",
     .doc = "a tensor of the given shape filled with value",
     .signatures = {{{kIos15, "shape:int32 value:T!=0.0 | T=fp16/fp32/int32/bool"}}},
     .infer = InferFill,
     .eval = EvalFill,
     .range = RangeFill,
     .constraints = {{{"shape", ConstraintOfCounts}}}},
    {.name = "fill_like",
     .doc = "a tensor of the shape of ref_tensor filled with value",
     .signatures =
         {{{kIos16, "ref_tensor:T value:U!=0.0 | T=fp16/fp32/int32/bool U=fp16/fp32/int32/bool"}}},
     .infer = InferFillLike,
     .eval = EvalFill,
     .range = RangeFill},
    {.name = "non_zero",
     .doc = "indices of the nonzero elements, one row per element",
     .signatures = {{{kIos15, "x:T | T=fp16/fp32/int32/bool"}}},
     .infer = InferNonZero,
     .eval = EvalNonZero,
     .range = RangeNonZero},
    {.name = "one_hot",
     .doc = "vectors with on_value at the index and off_value elsewhere",
     .signatures = {{{kIos15,
                      "indices:int32 one_hot_vector_size:int32 axis:int32!=-1 on_value:T!=1 "
                      "off_value:T!=0 | T=fp16/fp32/int32/bool"}}},
     .infer = InferOneHot,
     .eval = EvalOneHot,
     .range = RangeOneHot,
     .constraints = {{{"indices", WantOfClasses}, {"one_hot_vector_size", ConstraintOfCounts}}}},
    {.name = "range_1d",
     .doc = "start, start + step, ..., excluding end",
     .signatures = {{{kIos15, "end:T start:T step:T | T=fp16/fp32/int32"}}},
     .infer = InferRange,
     .eval = EvalRange,
     .fp16 = {.carries = kPlaces},
     .range = RangeRange,
     .constraints = {{{"", ConstraintOfCounts}}}},
    {.name = "shape",
     .doc = "the shape of x",
     .signatures = {{{kIos15, "x:T | T=fp16/fp32/int32/bool"}}},
     .infer = InferShape,
     .eval = EvalShape,
     .range = RangeShape},
};

}  // namespace

std::span<const OpRow> TensorRows() { return kTensorRows; }

}  // namespace mlc
