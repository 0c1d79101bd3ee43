#include <algorithm>
#include <numeric>

#include "lib/ir/concat_slice.h"
#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/strided_view.h"

namespace mlc {

namespace {

void InferView(InferContext& context, Shape shape) {
  context.Result(context.dtype("x"), std::move(shape));
  PassElements(context, "x");
}

void EvalReshaped(EvalContext& context) {
  // Shapes with very many dimensions are not evaluated.
  if (!IsStatic(context.result_types[0].shape))
    throw Error("resource-limit", "{}: the result has {} dimensions, which is too many",
                context.def().name, context.result_types[0].shape.size());
  context.Set(context.in("x").Reshaped(context.out_dims()));
}

// reshape. A 0 copies the dimension of x at the same distance from the end, or is 1 if there is
// none (the rule of iOS17; that of iOS15, which requires equal ranks, is a special case).
void InferReshape(InferContext& context) {
  const Shape& x = context.shape("x");
  int64_t length = VectorLength(context, "shape");
  std::optional<std::vector<Dim>> elements = context.Elements("shape");
  if (length == 0) elements.emplace();  // an empty shape is known in any case
  Shape shape;
  if (!elements) {  // a part may be -1 or 0 unless it is known to be positive
    for (const std::optional<Dim>& part : context.Parts("shape"))
      shape.push_back(
          part && part->is_constant() && part->constant() > 0 ? *part : context.Fresh("reshape"));
    return InferView(context, std::move(shape));
  }
  shape = *elements;
  Dim rest = 1;  // product of all dimensions except -1
  int open = -1;
  for (int64_t i = 0; i < length; ++i) {
    int64_t from_x = i + static_cast<int64_t>(x.size()) - length;
    if (shape[i] == Dim(-1)) {
      if (open >= 0) context.Fail("shape has more than one -1");
      open = static_cast<int>(i);
      continue;
    }
    if (shape[i] == Dim(0)) shape[i] = from_x >= 0 ? x[from_x] : Dim(1);
    if (shape[i].is_constant() && shape[i].constant() < 0)
      context.Fail("invalid dimension {} in shape", shape[i].constant());
    rest = rest * shape[i];
  }
  Dim total = Product(x);
  auto mismatch = [&] {
    context.Fail("{} cannot be reshaped to {}", ToString(x), ToString(*elements));
  };
  if (open >= 0) {
    if (rest == Dim(0)) mismatch();
    std::optional<Dim> exact = DivideExactly(total, rest);
    if (!exact && total.is_constant() && rest.is_constant()) mismatch();
    shape[open] = exact ? *exact : FloorDiv(total, rest);
  } else if (Dim difference = total - rest;
             difference.is_constant() && difference.constant() != 0) {
    mismatch();
  }
  InferView(context, std::move(shape));
}

// reshape_like: dimensions [begin, end) of each reference tensor, in Python's notation.
void InferReshapeLike(InferContext& context) {
  int count = context.count("ref_tensors");
  for (const char* name : {"begins", "ends", "end_masks"})
    if (context.count(name) != count)
      context.Fail("{} reference tensors, but {} {}", count, context.count(name), name);
  auto scalar = [&](std::string_view name, int i) {
    Tensor value = context.value(name, i);
    if (!value)
      throw Error("needs-constant", "{}: operand \"{}\" must be known at compile time",
                  context.def().name, name);
    if (value.size() != 1) context.Fail("{} is not a scalar", name);
    return value.Int(0);
  };
  Shape shape;
  for (int i = 0; i < count; ++i) {
    const Shape& reference = context.shape("ref_tensors", i);
    int64_t rank = static_cast<int64_t>(reference.size());
    auto position = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    int64_t begin = position(scalar("begins", i));
    int64_t end = scalar("end_masks", i) ? rank : position(scalar("ends", i));
    for (int64_t d = begin; d < end; ++d) shape.push_back(reference[d]);
  }
  Dim difference = Product(context.shape("x")) - Product(shape);
  if (difference.is_constant() && difference.constant() != 0)
    context.Fail("{} cannot be reshaped to {}", ToString(context.shape("x")), ToString(shape));
  InferView(context, std::move(shape));
}

std::vector<int> Permutation(const OpContext& context) {
  int rank = context.rank("x");
  std::vector<int64_t> perm = context.Ints("perm");
  if (static_cast<int>(perm.size()) != rank)
    context.Fail("perm has {} entries, but x has rank {}", perm.size(), rank);
  std::vector<int> out;
  for (int64_t p : perm) {
    int axis = OpContext::Axis(p, rank);
    if (std::ranges::find(out, axis) != out.end())
      context.Fail("duplicate dimension {} in perm", axis);
    out.push_back(axis);
  }
  return out;
}

void InferTranspose(InferContext& context) {
  Shape shape;
  for (int axis : Permutation(context)) shape.push_back(context.shape("x")[axis]);
  InferView(context, std::move(shape));
}

void EvalTranspose(EvalContext& context) {
  context.Set(context.in("x").Transposed(Permutation(context)));
}

// Distinct axes in [-rank, rank), normalised and sorted.
std::vector<int> SortedAxes(const OpContext& context, std::string_view name, int rank) {
  std::vector<int> axes;
  for (int64_t axis : context.Ints(name)) axes.push_back(OpContext::Axis(axis, rank));
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    context.Fail("duplicate dimension in {}", name);
  return axes;
}

void InferExpandDims(InferContext& context) {
  Shape shape = context.shape("x");
  int rank = context.rank("x") + static_cast<int>(context.Ints("axes").size());
  for (int axis : SortedAxes(context, "axes", rank)) shape.insert(shape.begin() + axis, Dim(1));
  InferView(context, std::move(shape));
}

// squeeze ignores listed dimensions that are not 1, like torch and unlike NumPy. Without axes,
// symbolic dimensions are assumed to be greater than 1.
void InferSqueeze(InferContext& context) {
  const Shape& x = context.shape("x");
  std::vector<bool> drop(x.size());
  if (context.has("axes")) {
    for (int axis : SortedAxes(context, "axes", context.rank("x"))) {
      if (!x[axis].is_constant())
        context.Fail("dimension {} of {} is not known to be 1", axis, ToString(x));
      drop[axis] = x[axis] == Dim(1);
    }
  } else {
    for (size_t i = 0; i < x.size(); ++i) drop[i] = x[i] == Dim(1);
  }
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i)
    if (!drop[i]) shape.push_back(x[i]);
  InferView(context, std::move(shape));
}

void InferFlatten2d(InferContext& context) {
  const Shape& x = context.shape("x");
  int64_t rank = context.rank("x"), axis = context.Int("axis");
  if (axis < -rank || axis > rank)
    context.Fail("axis {} is out of range for x of rank {}", axis, rank);
  auto middle = x.begin() + (axis < 0 ? axis + rank : axis);
  context.Result(context.dtype("x"),
                 {Product(Shape(x.begin(), middle)), Product(Shape(middle, x.end()))});
}

// The common shape of operands, which must have the same dtype and rank; dimension `except` may
// differ.
Shape CommonShape(const OpContext& context, int except) {
  int count = context.count("values");
  if (count == 0) context.Fail("there are no values");
  Shape common = context.shape("values", 0);
  for (int k = 1; k < count; ++k) {
    const Shape& shape = context.shape("values", k);
    if (context.dtype("values", k) != context.dtype("values", 0) || shape.size() != common.size())
      context.Fail("values are {} and {}, expected the same dtype and rank",
                   context.type("values", 0).ToString(), context.type("values", k).ToString());
    for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
      if (i == except || shape[i] == common[i] || !shape[i].is_constant()) continue;
      if (common[i].is_constant())
        context.Fail("values of shapes {} and {} differ in dimension {}",
                     ToString(context.shape("values", 0)), ToString(shape), i);
      common[i] = shape[i];
    }
  }
  return common;
}

// Concatenates the known elements of all values, if all are known.
void JoinElements(InferContext& context) {
  std::vector<Dim> joined;
  for (int k = 0; k < context.count("values"); ++k) {
    auto elements = WholeElements(context, "values", k);
    if (!elements) return;
    joined.insert(joined.end(), elements->begin(), elements->end());
  }
  context.Elements(std::move(joined));
}

// concat. Scalars count as vectors of one element, as in coremltools.
void InferConcat(InferContext& context) {
  if (context.count("values") == 0) context.Fail("there are no values");
  int count = context.count("values"), rank = context.rank("values");
  int axis = rank ? OpContext::Axis(context.Int("axis"), rank) : -1;
  bool interleave = context.Bool("interleave");
  Shape shape = CommonShape(context, interleave ? -1 : axis);
  if (!rank) {
    shape.push_back(count);
  } else if (interleave) {
    shape[axis] = shape[axis] * Dim(count);
  } else {
    for (int k = 1; k < count; ++k) shape[axis] = shape[axis] + context.shape("values", k)[axis];
  }
  context.Result(context.dtype("values"), std::move(shape));
  if (rank <= 1 && !interleave) JoinElements(context);
}

std::vector<Tensor> Values(const EvalContext& context) {
  std::vector<Tensor> values;
  for (int k = 0; k < context.count("values"); ++k) values.push_back(context.in("values", k));
  return values;
}

// The product of the first n dimensions; at least 1, so that it can be a divisor.
int64_t Leading(const Dims& dims, int n) {
  int64_t product = 1;
  for (int i = 0; i < n; ++i) product *= std::max<int64_t>(dims[i], 1);
  return product;
}

void EvalConcat(EvalContext& context) {
  int rank = context.rank("values");
  int axis = rank ? OpContext::Axis(context.Int("axis"), rank) : 0;
  if (rank && !context.Bool("interleave")) return context.Set(Join(Values(context), axis));
  if (rank) ++axis;  // rows are single slices along the axis
  context.Set(
      SideBySide(Values(context), Leading(context.in("values").dims(), axis), context.out_dims()));
}

void InferStack(InferContext& context) {
  Shape shape = CommonShape(context, -1);
  int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(shape.size()) + 1);
  shape.insert(shape.begin() + axis, Dim(context.count("values")));
  context.Result(context.dtype("values"), std::move(shape));
  if (context.rank("values") == 0) JoinElements(context);
}

void EvalStack(EvalContext& context) {
  Dims out = context.out_dims();
  int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(out.size()));
  context.Set(SideBySide(Values(context), Leading(out, axis), out));
}

// The sizes of the parts along the axis.
std::vector<Dim> PartSizes(const OpContext& context, const Dim& size) {
  constexpr int64_t kMaxParts = 1 << 16;
  if (!context.has("num_splits") && !context.has("split_sizes"))
    context.Fail("requires num_splits or split_sizes");
  if (!context.has("split_sizes")) {
    int64_t parts = context.Int("num_splits");
    if (parts < 1 || parts > kMaxParts) context.Fail("num_splits is {}", parts);
    std::optional<Dim> part = DivideExactly(size, Dim(parts));
    if (!part && size.is_constant())
      context.Fail("{1} is not divisible into {0} equal parts", parts, size.ToString());
    return std::vector<Dim>(parts, part ? *part : FloorDiv(size, Dim(parts)));
  }
  std::vector<int64_t> sizes = context.Ints("split_sizes");
  if (sizes.empty()) context.Fail("split_sizes is empty");
  if (context.has("num_splits") && context.Int("num_splits") != static_cast<int64_t>(sizes.size()))
    context.Fail("num_splits is {}, but there are {} sizes", context.Int("num_splits"),
                 sizes.size());
  Dim sum = 0;
  for (int64_t part : sizes) {
    if (part < 0) context.Fail("invalid size {} in split_sizes", part);
    sum = sum + Dim(part);
  }
  if (size.is_constant() && sum != size)
    context.Fail("split_sizes add up to {}, but the dimension is {}", sum.ToString(),
                 size.ToString());
  return std::vector<Dim>(sizes.begin(), sizes.end());
}

void InferSplit(InferContext& context) {
  const Shape& x = context.shape("x");
  int axis = OpContext::Axis(context.Int("axis"), context.rank("x"));
  std::optional<std::vector<Dim>> elements;
  if (x.size() == 1 && x[0].is_constant()) elements = WholeElements(context, "x");
  int64_t begin = 0;
  for (const Dim& part : PartSizes(context, x[axis])) {
    Shape shape = x;
    shape[axis] = part;
    context.Result(context.dtype("x"), std::move(shape));
    if (!elements) continue;
    auto first = elements->begin() + begin;
    context.Elements(std::vector<Dim>(first, first + part.constant()));
    begin += part.constant();
  }
}

void EvalSplit(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  Dims strides = StridesOf(x.dims());
  int64_t begin = 0;
  for (size_t k = 0; k < context.result_types.size(); ++k) {
    Dims dims = context.out_dims(static_cast<int>(k));
    context.Set(StridedView(x, dims, strides, begin * strides[axis]));
    begin += dims[axis];
  }
}

void InferTile(InferContext& context) {
  const Shape& x = context.shape("x");
  if (VectorLength(context, "reps") != context.rank("x"))
    context.Fail("reps has {} entries, but x is {}", VectorLength(context, "reps"), ToString(x));
  std::vector<std::optional<Dim>> reps = context.Parts("reps");
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (reps[i] && reps[i]->is_constant() && reps[i]->constant() < 0)
      context.Fail("invalid count {} in reps", reps[i]->constant());
    shape.push_back(reps[i] ? x[i] * *reps[i] : context.Fresh("tile"));
  }
  context.Result(context.dtype("x"), shape);
  constexpr int64_t kMaxElements = 4096;
  if (shape.size() != 1 || !shape[0].is_constant() || shape[0].constant() > kMaxElements) return;
  if (auto elements = WholeElements(context, "x")) {
    std::vector<Dim> repeated;
    for (int64_t i = 0; i < shape[0].constant(); ++i)
      repeated.push_back((*elements)[i % elements->size()]);
    context.Elements(std::move(repeated));
  }
}

void EvalTile(EvalContext& context) {
  Tensor x = context.in("x");
  CheckResultSize(context, context.out_dims());
  // Each dimension becomes [repetitions, dimension]; repetitions have stride 0.
  Dims own = StridesOf(x.dims()), dims, strides;
  std::vector<int64_t> reps = context.Ints("reps");
  for (int i = 0; i < x.rank(); ++i) {
    dims.insert(dims.end(), {reps[i], x.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  context.Set(StridedView(x, dims, strides).Reshaped(context.out_dims()));
}

// Reflection excludes the border element, and neither mode works on empty dimensions.
void CheckPadding(const OpContext& context, const std::string& mode, int64_t size, int64_t before,
                  int64_t after) {
  if (mode != "constant" && before + after > 0 &&
      (size == 0 || (mode == "reflect" && std::max(before, after) >= size)))
    context.Fail("{} padding of {} and {} is too large for a dimension of {}", mode, before, after,
                 size);
}

void InferPad(InferContext& context) {
  Shape shape = context.shape("x");
  int64_t length = VectorLength(context, "pad"), rank = context.rank("x");
  if (length % 2 || length > 2 * rank)
    context.Fail("pad has {} entries, but x is {}", length, ToString(shape));
  std::string mode = context.String("mode");
  if (mode != "constant" && mode != "reflect" && mode != "replicate")
    context.Fail("mode is \"{}\", expected constant, reflect or replicate", mode);
  auto pad = context.Elements("pad");
  for (int64_t i = 0; i < length / 2; ++i) {
    Dim& dim = shape[rank - length / 2 + i];
    if (!pad) {
      dim = context.Fresh("pad");
      continue;
    }
    const Dim size = dim, before = (*pad)[2 * i], after = (*pad)[2 * i + 1];
    for (const Dim& amount : {before, after}) {
      if (amount.is_constant() && amount.constant() < 0)
        context.Fail("invalid padding {}", amount.constant());
      dim = dim + amount;
    }
    if (size.is_constant() && before.is_constant() && after.is_constant())
      CheckPadding(context, mode, size.constant(), before.constant(), after.constant());
  }
  context.Result(context.dtype("x"), shape);
  if (rank != 1 || !pad || mode != "constant" || !IsStatic(*pad)) return;
  auto elements = WholeElements(context, "x");
  if (!elements || IsFloat(context.dtype("x"))) return;
  constexpr int64_t kMaxElements = 4096;
  if (!shape[0].is_constant() || shape[0].constant() > kMaxElements) return;
  std::vector<Dim> padded(pad->empty() ? 0 : (*pad)[0].constant(),
                          Dim(context.Int("constant_val")));
  padded.insert(padded.end(), elements->begin(), elements->end());
  padded.resize(shape[0].constant(), Dim(context.Int("constant_val")));
  context.Elements(std::move(padded));
}

// For each index of a padded dimension, the index of x that it copies; -1: the constant.
std::vector<int64_t> PadSources(const OpContext& context, int64_t size, int64_t before,
                                int64_t after, const std::string& mode) {
  bool reflect = mode == "reflect";
  CheckPadding(context, mode, size, before, after);
  std::vector<int64_t> sources(before + size + after);
  for (int64_t i = 0; i < static_cast<int64_t>(sources.size()); ++i) {
    int64_t from = i - before;
    if (from < 0)
      from = reflect ? -from : mode == "replicate" ? 0 : -1;
    else if (from >= size)
      from = reflect ? 2 * size - 2 - from : mode == "replicate" ? size - 1 : -1;
    sources[i] = from;
  }
  return sources;
}

void EvalPad(EvalContext& context) {
  Tensor x = context.in("x"), constant = context.in("constant_val").Cast(x.dtype());
  Dims out_dims = context.out_dims(), strides = StridesOf(x.dims());
  CheckResultSize(context, out_dims);
  std::vector<int64_t> pad = context.Ints("pad");
  std::string mode = context.String("mode");
  if (constant.size() != 1) context.Fail("constant_val is not a scalar");
  int rank = x.rank(), untouched = rank - static_cast<int>(pad.size() / 2);
  std::vector<std::vector<int64_t>> sources;  // offsets in x; -1: the constant
  for (int d = 0; d < rank; ++d) {
    bool padded = d >= untouched;
    sources.push_back(PadSources(context, x.dims()[d], padded ? pad[2 * (d - untouched)] : 0,
                                 padded ? pad[2 * (d - untouched) + 1] : 0, mode));
    for (int64_t& source : sources.back())
      if (source >= 0) source *= strides[d];
  }
  context.Set(DispatchWidth(x.dtype(), [&]<class Word>(Word) {
    std::byte* bytes = nullptr;
    Tensor out = Tensor::Allocate(x.dtype(), out_dims, &bytes);
    Word* to = reinterpret_cast<Word*>(bytes);
    Pin<Word> from = x.data<Word>();
    Word fill = constant.data<Word>()[0];
    if (rank == 0) *to = from[0];
    if (rank == 0 || out.size() == 0) return out;
    Dims index(rank, 0);
    while (true) {
      int64_t row = 0;
      for (int d = 0; d < rank - 1 && row >= 0; ++d)
        row = sources[d][index[d]] < 0 ? -1 : row + sources[d][index[d]];
      for (int64_t last : sources[rank - 1]) *to++ = row < 0 || last < 0 ? fill : from[row + last];
      int d = rank - 2;
      for (; d >= 0 && ++index[d] == out_dims[d]; --d) index[d] = 0;
      if (d < 0) return out;
    }
  }));
}

std::vector<int> ReversedAxes(const OpContext& context) {
  if (context.has("axes")) return SortedAxes(context, "axes", context.rank("x"));
  std::vector<int> all(context.rank("x"));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void InferReverse(InferContext& context) {
  bool reversed = !ReversedAxes(context).empty();
  context.Result(context.type("x"));
  if (context.rank("x") > 1) return;
  if (auto elements = WholeElements(context, "x")) {
    if (reversed) std::ranges::reverse(*elements);
    context.Elements(std::move(*elements));
  }
}

void EvalReverse(EvalContext& context) {
  Tensor x = context.in("x");
  Dims strides = StridesOf(x.dims());
  int64_t base = 0;
  for (int axis : ReversedAxes(context)) {
    base += (x.dims()[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  context.Set(StridedView(x, x.dims(), strides, base));
}

void InferReverseSequence(InferContext& context) {
  const Shape& x = context.shape("x");
  const Dim& batch = x[OpContext::Axis(context.Int("batch_axis"), context.rank("x"))];
  OpContext::Axis(context.Int("seq_axis"), context.rank("x"));
  const Shape& lengths = context.shape("lengths");
  if (lengths.size() != 1 ||
      (lengths[0].is_constant() && batch.is_constant() && lengths[0] != batch))
    context.Fail("lengths is {}, expected one element for each of {}",
                 context.type("lengths").ToString(), batch.ToString());
  context.Result(context.type("x"));
}

void EvalReverseSequence(EvalContext& context) {
  Tensor x = context.in("x");
  int batch = OpContext::Axis(context.Int("batch_axis"), x.rank());
  int sequence = OpContext::Axis(context.Int("seq_axis"), x.rank());
  Dims strides = StridesOf(x.dims());
  std::vector<int64_t> lengths = context.Ints("lengths");
  for (int64_t length : lengths)
    if (length < 0 || length > x.dims()[sequence])
      context.Fail("length {} is out of range for a sequence of {}", length, x.dims()[sequence]);
  context.Set(DispatchWidth(x.dtype(), [&]<class Word>(Word) {
    std::byte* bytes = nullptr;
    Tensor out = Tensor::Allocate(x.dtype(), x.dims(), &bytes);
    Word* to = reinterpret_cast<Word*>(bytes);
    Pin<Word> from = x.data<Word>();
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t length = lengths[i / strides[batch] % x.dims()[batch]];
      int64_t at = i / strides[sequence] % x.dims()[sequence];
      to[i] = from[at < length ? i + (length - 1 - 2 * at) * strides[sequence] : i];
    }
    return out;
  }));
}

Interval RangePad(const RangeContext& context, int) {
  Tensor mode = context.value("mode");
  bool constant = !mode || mode.strings()[0] == "constant";
  return constant ? Join(context.in("x"), context.in("constant_val")) : context.in("x");
}

OperandConstraint WantOfConcat(const ConstraintContext& context) {
  OperandConstraint constraint = context.Asked();
  if (constraint.parts.empty()) return constraint;
  const Shape& shape = context.value.type.shape;
  Tensor axis = context.op.constant("axis");
  int rank = static_cast<int>(shape.size());
  if (!axis || rank == 0 || OpContext::Axis(axis.Int(0), rank) != rank - 1) return constraint;
  // The part of the last dimension that belongs to this value.
  size_t begin = 0, count = static_cast<size_t>(context.Size(shape.back()));
  for (size_t k = 0; k < context.index; ++k)
    begin += static_cast<size_t>(context.Size(context.op.arg("values")[k].type().shape.back()));
  if (begin + count > constraint.parts.size()) {
    constraint.parts.clear();
    return constraint;
  }
  auto first = constraint.parts.begin() + static_cast<std::ptrdiff_t>(begin);
  constraint.parts = {first, first + static_cast<std::ptrdiff_t>(count)};
  constraint.low = -std::numeric_limits<double>::infinity();
  constraint.high = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] : constraint.parts) {
    constraint.low = std::max(constraint.low, low);
    constraint.high = std::min(constraint.high, high);
  }
  return constraint;
}

constexpr OpRow kShapeRows[] = {
    {.name = "concat",
     .doc = "values concatenated along axis; interleaved: with alternating slices",
     .signatures = {{{kIos15,
                      "values:T... axis:int32! interleave:bool!=false | "
                      "T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferConcat,
     .eval = EvalConcat,
     .moves = Moves::kView,
     .layout = {.data = {"values"}, .axes = "axis"},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfValues,
     .constraints = {{{"values", WantOfConcat}}}},
    {.name = "expand_dims",
     .doc = "x with dimensions of size 1 inserted at axes",
     .signatures = {{{kIos15, "x:T axes:int32! | T=fp16/fp32/int32/bool"},
                     {kIos17, "x:T axes:int32! | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferExpandDims,
     .eval = EvalReshaped,
     .moves = Moves::kShape,
     .layout = {.data = {"x"}},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX},
    {.name = "flatten2d",
     .doc = "x as a matrix: dimensions before axis by dimensions from axis",
     .signatures = {{{kIos15, "x:T axis:int32!=1 | T=fp16/fp32/int32/bool"}}},
     .infer = InferFlatten2d,
     .eval = EvalReshaped,
     .moves = Moves::kShape,
     .range = RangeOfX},
    {.name = "pad",
     .doc = "x with its last dimensions padded by a constant, by reflection or by replication",
     .signatures = {{{kIos15,
                      "x:T pad:int32 mode:string!=constant constant_val:T!=0.0 | T=fp16/fp32"}}},
     .infer = InferPad,
     .eval = EvalPad,
     .layout = {.data = {"x"}, .per_dimension = {"pad"}},
     .neutral = {{{"pad", 0, "x"}}},
     .fp16 = {.carries = kLogarithms | kWholeSums, .kind = kKeepsWhole, .bounds = {"constant_val"}},
     .range = RangePad},
    {.name = "reshape",
     .doc = "x in another shape; -1 is inferred, 0 copies the dimension of x",
     .signatures =
         {{{kIos15, "x:T shape:int32 | T=fp16/fp32/int32/bool"},
           {kIos17,
            "x:T shape:U | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool U=int8/int16/int32"}}},
     .infer = InferReshape,
     .eval = EvalReshaped,
     .moves = Moves::kShape,
     .layout = {.data = {"x"}},
     .fp16 = {.carries = kPlaces | kSteps},
     .range = RangeOfX},
    {.name = "reshape_like",
     .doc = "x in a shape composed of dimensions of reference tensors",
     .signatures =
         {{{kIos16,
            "x:T ref_tensors:fp16/fp32/int32/bool... begins:int32... ends:int32... "
            "end_masks:bool... | T=fp16/fp32/int32/bool"},
           {kIos17,
            "x:T ref_tensors:fp16/fp32/int8/int16/int32/uint8/uint16/bool... begins:int32... "
            "ends:int32... end_masks:bool... | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferReshapeLike,
     .eval = EvalReshaped,
     .moves = Moves::kShape,
     .range = RangeOfX},
    {.name = "reverse",
     .doc = "x reversed along axes (default: all)",
     .signatures = {{{kIos15, "x:T axes:int32!? | T=fp16/fp32/int32/bool"},
                     {kIos17,
                      "x:T axes:int32!? | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferReverse,
     .eval = EvalReverse,
     .moves = Moves::kView,
     .layout = {.data = {"x"}, .axes = "axes"},
     .fp16 = {.carries = kSelections},
     .range = RangeOfX},
    {.name = "reverse_sequence",
     .doc = "x with the first lengths[b] elements along seq_axis reversed for each b of batch_axis",
     .signatures =
         {{{kIos15,
            "x:T lengths:int32 seq_axis:int32!=0 batch_axis:int32!=0 | T=fp16/fp32/int32/bool"},
           {kIos17,
            "x:T lengths:U seq_axis:int32!=0 batch_axis:int32!=0 | "
            "T=fp16/fp32/int8/int16/int32/uint8/uint16/bool U=int8/int16/int32"}}},
     .infer = InferReverseSequence,
     .eval = EvalReverseSequence,
     .moves = Moves::kCopies,
     .range = RangeOfX},
    {.name = "split",
     .doc = "x split along axis into equal parts or parts of given sizes",
     .signatures =
         {{{kIos15,
            "x:T num_splits:int32!? split_sizes:int32!? axis:int32! | T=fp16/fp32/int32/bool"}}},
     .infer = InferSplit,
     .eval = EvalSplit,
     .moves = Moves::kView,
     .layout = {.data = {"x"}, .axes = "axis"},
     .fp16 = {.carries = kLogarithms | kSelections | kCounts},
     .range = RangeOfX},
    {.name = "squeeze",
     .doc = "x without dimensions of size 1 (those in axes, or all)",
     .signatures = {{{kIos15, "x:T axes:int32!? | T=fp16/fp32/int32/bool"},
                     {kIos17,
                      "x:T axes:int32!? | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferSqueeze,
     .eval = EvalReshaped,
     .moves = Moves::kShape,
     .layout = {.data = {"x"}, .axes = "axes"},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX},
    {.name = "stack",
     .doc = "values stacked along a new dimension",
     .signatures = {{{kIos15,
                      "values:T... axis:int32! | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferStack,
     .eval = EvalStack,
     .moves = Moves::kView,
     .fp16 = {.carries = kSelections | kCounts},
     .range = RangeOfValues,
     .constraints = {{{"values", ResultConstraint}}}},
    {.name = "tile",
     .doc = "x repeated reps[i] times along dimension i",
     .signatures = {{{kIos15, "x:T reps:int32 | T=fp16/fp32/int32/bool"}}},
     .infer = InferTile,
     .eval = EvalTile,
     .moves = Moves::kCopies,
     .layout = {.data = {"x"}, .per_dimension = {"reps"}},
     .neutral = {{{"reps", 1, "x"}}},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX,
     .constraints = {{{"reps", ConstraintOfCounts}}}},
    {.name = "transpose",
     .doc = "x with its dimensions permuted by perm",
     .signatures = {{{kIos15, "x:T perm:int32! | T=fp16/fp32/int32/bool"},
                     {kIos17, "x:T perm:int32! | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferTranspose,
     .eval = EvalTranspose,
     .moves = Moves::kView,
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX},
};

}  // namespace

std::span<const OpRow> ShapeRows() { return kShapeRows; }

}  // namespace mlc
