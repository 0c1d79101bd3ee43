#include <algorithm>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/strided_view.h"

namespace mlc {

namespace {

// Returns whether negative indices count from the end. They are out of range in the forms since
// iOS17, which have validate_indices (coremltools, mil/ops/defs/iOS17/scatter_gather.py).
bool CountsFromEnd(const OpContext& context) {
  if (context.Bool("validate_indices")) return false;
  const Operation* op = context.operation();
  if (!op || !op->block) return true;
  const Form* form = op->form ? op->form : op->def->FormFor(op->block->function->opset);
  return !form || form->Find("validate_indices") < 0;
}

// Indices out of range are always errors.
class Index {
 public:
  explicit Index(const OpContext& context) : context_(context), negative_(CountsFromEnd(context)) {}
  int64_t operator()(int64_t index, int64_t size) const {
    if (index >= size || index < (negative_ ? -size : 0))
      context_.Fail(
          "index {} is out of range for a dimension of size {}{}", index, size,
          index < 0 && index >= -size ? "; since iOS17, indices may not be negative" : "");
    return index < 0 ? index + size : index;
  }

 private:
  const OpContext& context_;
  bool negative_;
};

// Fails unless the shapes can be equal.
void CheckShape(const OpContext& context, std::string_view name, const Shape& expected) {
  if (!MayEqual(context.shape(name), expected))
    context.Fail("{} is {}, expected the shape {}", name, context.type(name).ToString(),
                 ToString(expected));
}

int64_t Product(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= dims[i];
  return product;
}

void Append(Shape& shape, const Shape& from, size_t begin, size_t end) {
  shape.insert(shape.end(), from.begin() + begin, from.begin() + end);
}

int BatchDims(const OpContext& context) {
  int64_t batch = context.Int("batch_dims");
  const Shape &x = context.shape("x"), &indices = context.shape("indices");
  if (batch < 0 || batch > context.rank("x") || batch > context.rank("indices"))
    context.Fail("batch_dims is {}, x is {} and indices {}", batch, ToString(x), ToString(indices));
  for (int64_t d = 0; d < batch; ++d)
    if (x[d].is_constant() && indices[d].is_constant() && x[d] != indices[d])
      context.Fail("x {} and indices {} differ in batch dimension {}", ToString(x),
                   ToString(indices), d);
  return static_cast<int>(batch);
}

int GatherAxis(const OpContext& context, int batch) {
  int axis = OpContext::Axis(context.Int("axis"), context.rank("x"));
  if (axis < batch) context.Fail("axis {} is among the {} batch dimensions", axis, batch);
  return axis;
}

void InferGather(InferContext& context) {
  const Shape &x = context.shape("x"), &indices = context.shape("indices");
  int batch = BatchDims(context), axis = GatherAxis(context, batch);
  Shape shape;
  Append(shape, x, 0, axis);
  Append(shape, indices, batch, indices.size());
  Append(shape, x, axis + 1, x.size());
  context.Result(context.dtype("x"), shape);

  Tensor at = context.value("indices");
  if (x.size() != 1 || batch || !at || at.rank() > 1) return;
  auto elements = WholeElements(context, "x");
  if (!elements) return;
  std::vector<Dim> picked;
  Index index(context);
  for (int64_t i : at.Ints())
    picked.push_back((*elements)[index(i, static_cast<int64_t>(elements->size()))]);
  context.Elements(std::move(picked));
}

void EvalGather(EvalContext& context) {
  ElementSource x(context.in("x"));
  Tensor indices = context.in("indices");
  const Dims& dims = x.tensor().dims();
  int batch = BatchDims(context), axis = GatherAxis(context, batch);
  int64_t batches = Product(dims, 0, batch), outer = Product(dims, batch, axis);
  int64_t size = dims[axis], inner = Product(dims, axis + 1, dims.size());
  int64_t picks = Product(indices.dims(), batch, indices.dims().size());
  std::vector<int64_t> at = indices.Ints();
  Index index(context);
  for (int64_t& i : at) i = index(i, size);
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(x.tensor().dtype(), context.out_dims(), &out);
  if (inner > 0)
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < picks; ++k) {
          x.Copy(((b * outer + o) * size + at[b * picks + k]) * inner, 1, inner, out);
          out += inner * x.width();
        }
  context.Set(tensor);
}

// gather_along_axis and scatter_along_axis: indices have the shape of `data` except along the axis.
int AlongAxis(const OpContext& context, std::string_view data) {
  int axis = OpContext::Axis(context.Int("axis"), context.rank(data));
  Shape expected = context.shape(data);
  if (context.rank("indices") == context.rank(data))
    expected[axis] = context.shape("indices")[axis];
  CheckShape(context, "indices", expected);
  return axis;
}

// The offset in a tensor of `dims` that each index along an axis refers to.
std::vector<int64_t> OffsetsAlongAxis(const Index& index, const Dims& dims, int axis,
                                      const Tensor& indices) {
  std::vector<int64_t> at = indices.Ints();
  int64_t inner = Product(dims, axis + 1, dims.size()), size = dims[axis];
  int64_t picks = indices.dims()[axis];
  for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i)
    at[i] = (i / inner / picks * size + index(at[i], size)) * inner + i % inner;
  return at;
}

void InferGatherAlongAxis(InferContext& context) {
  AlongAxis(context, "x");
  context.Result(context.dtype("x"), context.shape("indices"));
}

void EvalGatherAlongAxis(EvalContext& context) {
  ElementSource x(context.in("x"));
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(x.tensor().dtype(), context.out_dims(), &out);
  for (int64_t at : OffsetsAlongAxis(Index(context), x.tensor().dims(), AlongAxis(context, "x"),
                                     context.in("indices"))) {
    x.Copy(at, 1, 1, out);
    out += x.width();
  }
  context.Set(tensor);
}

// The number of dimensions of `data` that an index vector (the last dimension of indices) covers.
int IndexDepth(const OpContext& context, std::string_view data, int batch) {
  const Shape& indices = context.shape("indices");
  if (indices.empty()) context.Fail("indices is a scalar");
  if (!indices.back().is_constant())
    throw Error("needs-constant",
                "{}: the last dimension of \"indices\" must be known at compile time",
                context.def().name);
  if (batch >= static_cast<int>(indices.size()) ||
      indices.back().constant() > context.rank(data) - batch)
    context.Fail("index vectors in {} exceed the rank of {}", ToString(indices),
                 ToString(context.shape(data)));
  return static_cast<int>(indices.back().constant());
}

// The offsets in a tensor of `dims` of the slices that index vectors refer to; the first `batch`
// dimensions are shared.
std::vector<int64_t> SliceOffsets(const Index& index, const Dims& dims, int batch, int depth,
                                  const Tensor& indices) {
  std::vector<int64_t> at = indices.Ints(), offsets;
  Dims strides = StridesOf(dims);
  int64_t vectors = Product(indices.dims(), 0, indices.rank() - 1);
  int64_t batches = Product(dims, 0, batch);
  int64_t slab = Product(dims, batch, dims.size());  // elements per batch
  for (int64_t v = 0; v < vectors; ++v) {
    int64_t offset = v / (vectors / batches) * slab;
    for (int d = 0; d < depth; ++d)
      offset += index(at[v * depth + d], dims[batch + d]) * strides[batch + d];
    offsets.push_back(offset);
  }
  return offsets;
}

void InferGatherNd(InferContext& context) {
  const Shape &x = context.shape("x"), &indices = context.shape("indices");
  int batch = BatchDims(context), depth = IndexDepth(context, "x", batch);
  Shape shape(indices.begin(), indices.end() - 1);
  Append(shape, x, batch + depth, x.size());
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalGatherNd(EvalContext& context) {
  ElementSource x(context.in("x"));
  const Dims& dims = x.tensor().dims();
  int batch = BatchDims(context), depth = IndexDepth(context, "x", batch);
  int64_t inner = Product(dims, batch + depth, dims.size());
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(x.tensor().dtype(), context.out_dims(), &out);
  for (int64_t at : SliceOffsets(Index(context), dims, batch, depth, context.in("indices"))) {
    x.Copy(at, 1, inner, out);
    out += inner * x.width();
  }
  context.Set(tensor);
}

enum class Mode { kAdd, kSub, kMul, kDiv, kMax, kMin, kUpdate };

Mode ScatterMode(const OpContext& context) {
  constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "max", "min", "update"};
  std::string mode = context.String("mode");
  const auto* found = std::find(std::begin(kNames), std::end(kNames), mode);
  if (found == std::end(kNames))
    context.Fail("mode is \"{}\", expected add, sub, mul, div, max, min or update", mode);
  return static_cast<Mode>(found - kNames);
}

// Integers wrap; integer division truncates.
template <class T>
T Combine(const OpContext& context, Mode mode, T old, T update) {
  using W = std::conditional_t<kIsFloat<T>, double, uint64_t>;
  W a = static_cast<W>(Widen(old)), b = static_cast<W>(Widen(update));
  switch (mode) {
    case Mode::kAdd:
      return Narrow<T>(a + b);
    case Mode::kSub:
      return Narrow<T>(a - b);
    case Mode::kMul:
      return Narrow<T>(a * b);
    case Mode::kMax:
      return Narrow<T>(MaximumOf(Widen(old), Widen(update)));
    case Mode::kMin:
      return Narrow<T>(MinimumOf(Widen(old), Widen(update)));
    case Mode::kUpdate:
      return update;
    case Mode::kDiv:
      break;
  }
  if constexpr (kIsFloat<T>) return Narrow<T>(a / b);
  if (b == 0) context.Fail("integer division by zero");
  if constexpr (std::is_signed_v<T>)
    if (update == T(-1)) return Narrow<T>(W{0} - a);
  return Narrow<T>(Widen(old) / Widen(update));
}

// Combines the slices of `inner` elements of data at `offsets` with those of updates, in order.
void SetScattered(EvalContext& context, const std::vector<int64_t>& offsets, int64_t inner) {
  Tensor updates = context.in("updates");
  Mode mode = ScatterMode(context);
  if (static_cast<int64_t>(offsets.size()) * inner != updates.size())
    context.Fail("updates has {} elements, expected {}", updates.size(),
                 static_cast<int64_t>(offsets.size()) * inner);
  context.Set(Dispatch(context.out_dtype(), [&]<class T>(T) {
    Pin<T> pinned = updates.data<T>();
    const T* from = pinned.data();
    std::byte* bytes = nullptr;
    Tensor out = context.Change("data", &bytes);
    T* to = reinterpret_cast<T*>(bytes);
    if (context.on_change) {
      std::vector<T> old;
      for (int64_t offset : offsets) old.insert(old.end(), to + offset, to + offset + inner);
      context.on_change([offsets, inner, to, old = std::move(old)] {
        auto next = old.begin();
        for (int64_t offset : offsets)
          for (int64_t i = 0; i < inner; ++i) to[offset + i] = *next++;
      });
    }
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < inner; ++i, ++from)
        to[offset + i] = Combine<T>(context, mode, to[offset + i], *from);
    return out;
  }));
}

// Infers the type of data. A vector of known elements stays known, with its replaced elements.
void InferScattered(InferContext& context) {
  if (context.dtype("updates") != context.dtype("data"))
    context.Fail("data is {}, but updates is {}", context.type("data").ToString(),
                 context.type("updates").ToString());
  Mode mode = ScatterMode(context);
  context.Result(context.type("data"));
  Tensor at = context.value("indices");
  if (context.rank("data") != 1 || context.rank("updates") > 1 || mode != Mode::kUpdate || !at)
    return;
  auto elements = WholeElements(context, "data"), updates = WholeElements(context, "updates");
  if (!elements || !updates || at.size() != static_cast<int64_t>(updates->size())) return;
  Index index(context);
  for (int64_t i = 0; i < at.size(); ++i)
    (*elements)[index(at.Int(i), static_cast<int64_t>(elements->size()))] = (*updates)[i];
  context.Elements(std::move(*elements));
}

void InferScatter(InferContext& context) {
  const Shape &data = context.shape("data"), &indices = context.shape("indices");
  int axis = OpContext::Axis(context.Int("axis"), context.rank("data"));
  Shape expected;
  Append(expected, data, 0, axis);
  Append(expected, indices, 0, indices.size());
  Append(expected, data, axis + 1, data.size());
  CheckShape(context, "updates", expected);
  InferScattered(context);
}

void EvalScatter(EvalContext& context) {
  Dims dims = context.in("data").dims();
  int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(dims.size()));
  int64_t outer = Product(dims, 0, axis), inner = Product(dims, axis + 1, dims.size());
  std::vector<int64_t> at = context.in("indices").Ints(), offsets;
  Index index(context);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : at) offsets.push_back((o * dims[axis] + index(i, dims[axis])) * inner);
  SetScattered(context, offsets, inner);
}

void InferScatterAlongAxis(InferContext& context) {
  AlongAxis(context, "data");
  CheckShape(context, "updates", context.shape("indices"));
  InferScattered(context);
}

void EvalScatterAlongAxis(EvalContext& context) {
  Dims dims = context.in("data").dims();
  SetScattered(
      context,
      OffsetsAlongAxis(Index(context), dims, AlongAxis(context, "data"), context.in("indices")), 1);
}

void InferScatterNd(InferContext& context) {
  const Shape &data = context.shape("data"), &indices = context.shape("indices");
  int depth = IndexDepth(context, "data", 0);
  Shape expected(indices.begin(), indices.end() - 1);
  Append(expected, data, depth, data.size());
  CheckShape(context, "updates", expected);
  InferScattered(context);
}

void EvalScatterNd(EvalContext& context) {
  Dims dims = context.in("data").dims();
  int depth = IndexDepth(context, "data", 0);
  SetScattered(context, SliceOffsets(Index(context), dims, 0, depth, context.in("indices")),
               Product(dims, depth, dims.size()));
}

// All updates may apply to the same element.
Interval RangeScatter(const RangeContext& context, int) {
  Interval data = context.in("data"), updates = context.in("updates");
  Tensor mode = context.value("mode");
  if (!mode) return {};
  Dim count = Product(context.shape("updates"));
  double most = count.is_constant() ? static_cast<double>(count.constant())
                                    : std::numeric_limits<double>::infinity();
  // Floats are rounded to their dtype after each update.
  auto stepwise = [&](Interval sum) {
    if (!IsFloat(context.dtype("data"))) return sum;
    double unit = context.dtype("data") == DType::kFp16 ? 0x1p-11 : 0x1p-24;
    double error = most * unit * std::max(std::fabs(sum.low), std::fabs(sum.high));
    return std::isfinite(error) ? Interval{sum.low - error, sum.high + error} : Interval();
  };
  switch (ScatterMode(context)) {
    case Mode::kUpdate:
    case Mode::kMax:
    case Mode::kMin:
      return Join(data, updates);
    case Mode::kAdd:
      return stepwise(data + Sum(updates, 0, most));
    case Mode::kSub:
      return stepwise(data - Sum(updates, 0, most));
    default:
      return {};
  }
}

// The shape of the operand that the indices refer to.
const Shape ShapeOfData(const Operation& op) {
  return op.arg(op.def->Find("data") >= 0 ? "data" : "x")[0].type().shape;
}

OperandConstraint WantOfIndices(const ConstraintContext& context) {
  const Shape shape = ShapeOfData(context.op);
  if (shape.empty()) return {};
  Tensor axis = context.op.constant_or_default("axis");
  int place = axis ? OpContext::Axis(axis.Int(0), static_cast<int>(shape.size())) : 0;
  return OperandConstraint::Bounded(0, context.Size(shape[static_cast<size_t>(place)]) - 1,
                                    fmt::format("rows selected by {}", Quoted(context.op)));
}

OperandConstraint WantOfIndexVectors(const ConstraintContext& context) {
  const Operation& op = context.op;
  const Shape shape = ShapeOfData(op), &vectors = context.value.type.shape;
  if (vectors.empty()) return {};
  Tensor batch = op.def->Find("batch_dims") >= 0 ? op.constant_or_default("batch_dims") : Tensor();
  size_t first = batch ? static_cast<size_t>(std::max<int64_t>(batch.Int(0), 0)) : 0;
  OperandConstraint constraint =
      OperandConstraint::Bounded(0, std::numeric_limits<double>::infinity(),
                                 fmt::format("positions selected by {}", Quoted(op)));
  auto depth = static_cast<size_t>(context.Size(vectors.back()));
  for (size_t d = first; d < std::min(shape.size(), first + depth); ++d) {
    constraint.parts.emplace_back(0, std::max(0.0, context.Size(shape[d]) - 1));
    constraint.high = std::min(constraint.high, constraint.parts.back().second);
  }
  return constraint;
}

// The rows of a table are its outputs.
std::vector<WeightOperand> WeightsOfGather(const OpContext& context) {
  const int rank = context.rank("x");
  if (rank < 2 || !IsFloat(context.dtype("x"))) return {};
  const int axis = OpContext::Axis(context.Int("axis"), rank);
  return {{"x", axis, axis == rank - 1 ? rank - 2 : rank - 1}};
}

constexpr OpRow kScatterGatherRows[] = {
    {.name = "gather",
     .doc = "slices of x along axis, selected by indices",
     .signatures =
         {{{kIos15, "x:T indices:int32 axis:int32!=0 | T=fp16/fp32/int32"},
           {kIos16,
            "x:T indices:I axis:int32!=0 batch_dims:int32!=0 | T=fp16/fp32/int32 "
            "I=int32/uint16/int16"},
           {kIos17,
            "x:T indices:I axis:int32!=0 batch_dims:int32!=0 validate_indices:bool!=false | "
            "T=fp16/fp32/int32/int16/uint16/int8/uint8 I=int32/int16/uint16/int8/uint8"}}},
     .infer = InferGather,
     .eval = EvalGather,
     .moves = Moves::kCopies,
     .fp16 = {.carries = kPlaces},
     .weights = WeightsOfGather,
     .range = RangeOfX,
     .constraints = {{{"indices", WantOfIndices}}}},
    {.name = "gather_along_axis",
     .doc = "elements of x selected along axis by the elements of indices",
     .signatures =
         {{{kIos15, "x:T indices:int32 axis:int32!=0 | T=fp16/fp32/int32"},
           {kIos16, "x:T indices:I axis:int32!=0 | T=fp16/fp32/int32 I=int32/uint16/int16"},
           {kIos17,
            "x:T indices:I axis:int32!=0 validate_indices:bool!=false | "
            "T=fp16/fp32/int32/int16/uint16/int8/uint8 I=int32/int16/uint16/int8/uint8"}}},
     .infer = InferGatherAlongAxis,
     .eval = EvalGatherAlongAxis,
     .moves = Moves::kCopies,
     .fp16 = {.carries = kSelections},
     .range = RangeOfX,
     .constraints = {{{"indices", WantOfIndices}}}},
    {.name = "gather_nd",
     .doc = "slices of x selected by the index vectors in the last dimension of indices",
     .signatures =
         {{{kIos15, "x:T indices:int32 | T=fp16/fp32/int32"},
           {kIos16, "x:T indices:I batch_dims:int32!=0 | T=fp16/fp32/int32 I=int32/uint16/int16"},
           {kIos17,
            "x:T indices:I batch_dims:int32!=0 validate_indices:bool!=false | "
            "T=fp16/fp32/int32/int16/uint16/int8/uint8 I=int32/int16/uint16/int8/uint8"}}},
     .infer = InferGatherNd,
     .eval = EvalGatherNd,
     .moves = Moves::kCopies,
     .fp16 = {.carries = kSelections},
     .range = RangeOfX,
     .constraints = {{{"indices", WantOfIndexVectors}}}},
    {.name = "scatter",
     .doc = "data with the slices at indices along axis combined with updates",
     .signatures =
         {{{kIos15,
            "data:T indices:int32 updates:T axis:int32!=0 mode:string!=add | T=fp16/fp32/int32"},
           {kIos17,
            "data:T indices:int32 updates:T axis:int32!=0 mode:string!=add "
            "validate_indices:bool!=false | T=fp16/fp32/int32"}}},
     .infer = InferScatter,
     .eval = EvalScatter,
     .range = RangeScatter,
     .constraints = {{{"indices", WantOfIndices}}}},
    {.name = "scatter_along_axis",
     .doc = "data with the elements selected along axis by the elements of indices combined with "
            "updates",
     .signatures =
         {{{kIos15,
            "data:T indices:int32 updates:T axis:int32!=0 mode:string!=add | T=fp16/fp32/int32"},
           {kIos17,
            "data:T indices:int32 updates:T axis:int32!=0 mode:string!=add "
            "validate_indices:bool!=false | T=fp16/fp32/int32"}}},
     .infer = InferScatterAlongAxis,
     .eval = EvalScatterAlongAxis,
     .range = RangeScatter,
     .constraints = {{{"indices", WantOfIndices}}}},
    {.name = "scatter_nd",
     .doc = "data with the slices selected by the index vectors of indices combined with updates",
     .signatures = {{{kIos15,
                      "data:T indices:int32 updates:T mode:string!=add | T=fp16/fp32/int32"},
                     {kIos17,
                      "data:T indices:int32 updates:T mode:string!=add "
                      "validate_indices:bool!=false | T=fp16/fp32/int32"}}},
     .infer = InferScatterNd,
     .eval = EvalScatterNd,
     .range = RangeScatter,
     .constraints = {{{"indices", WantOfIndexVectors}}}},
};

}  // namespace

std::span<const OpRow> ScatterGatherRows() { return kScatterGatherRows; }

}  // namespace mlc
