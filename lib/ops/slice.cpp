#include <algorithm>

#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/strided_view.h"

namespace mlc {

namespace {

// Larger bounds (INT64_MAX for "to the end") exceed every dimension; the limit avoids overflow.
int64_t Saturate(int64_t bound) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return std::clamp(bound, -kFar, kFar);
}

// The operands of slice_by_index and slice_update, by dimension of x.
struct Spec {
  std::vector<int64_t> stride;
  std::vector<bool> begin_mask, end_mask, squeeze;
};

std::vector<bool> Mask(const OpContext& context, std::string_view name, int rank) {
  if (!context.has(name)) return std::vector<bool>(rank, false);
  std::vector<int64_t> mask = context.Ints(name);
  if (static_cast<int>(mask.size()) != rank)
    context.Fail("{} has {} entries, but x has rank {}", name, mask.size(), rank);
  return std::vector<bool>(mask.begin(), mask.end());
}

void CheckLength(const OpContext& context, std::string_view name) {
  const Shape& shape = context.shape(name);
  if (shape.size() != 1 || shape[0] != Dim(context.rank("x")))
    context.Fail("{} is {}, expected one entry for each of {}", name, context.type(name).ToString(),
                 ToString(context.shape("x")));
}

Spec ReadSpec(const OpContext& context) {
  int rank = context.rank("x");
  CheckLength(context, "begin");
  CheckLength(context, "end");
  Spec spec{std::vector<int64_t>(rank, 1), Mask(context, "begin_mask", rank),
            Mask(context, "end_mask", rank), Mask(context, "squeeze_mask", rank)};
  if (context.has("stride")) {
    CheckLength(context, "stride");
    spec.stride = context.Ints("stride");
  }
  for (int d = 0; d < rank; ++d) {
    if (spec.squeeze[d]) spec.stride[d] = 1;
    if (spec.stride[d] == 0) context.Fail("stride of dimension {} is 0", d);
    spec.stride[d] = Saturate(spec.stride[d]);
  }
  return spec;
}

// The indices begin, begin + step, ... (`count` of them) along one dimension.
struct Range {
  int64_t begin, step, count;
};

// NumPy's rule; a missing bound is the start or end of the dimension, depending on the sign of
// step.
Range Resolve(int64_t size, std::optional<int64_t> begin, std::optional<int64_t> end,
              int64_t step) {
  int64_t low = step > 0 ? 0 : -1, high = low + size;
  auto position = [&](int64_t bound) {
    bound = Saturate(bound);
    return std::clamp(bound < 0 ? bound + size : bound, low, high);
  };
  int64_t from = begin ? position(*begin) : step > 0 ? low : high;
  int64_t to = end ? position(*end) : step > 0 ? high : low;
  int64_t distance = step > 0 ? to - from : from - to, reach = step > 0 ? step : -step;
  return {from, step, distance <= 0 ? 0 : (distance + reach - 1) / reach};
}

// The number of indices for symbolic sizes; nullopt if the sign of a bound is unknown.
std::optional<Dim> SymbolicCount(const InferContext& context, const Dim& size,
                                 std::optional<Dim> begin, std::optional<Dim> end, int64_t step) {
  Dim low = step > 0 ? 0 : -1, high = low + size;
  auto position = [&](const Dim& bound) -> std::optional<Dim> {
    Dim at = bound.is_constant() ? Dim(Saturate(bound.constant())) : bound;
    Dim::Range range = context.Bounds(at);
    if (range.high < 0)
      at = at + size;
    else if (range.low < 0)
      return std::nullopt;
    else if (low == Dim(0) && range.high <= context.Bounds(high).low)
      return at;  // within the dimension for every size
    return Min(Max(at, low), high);
  };
  std::optional<Dim> from = begin ? position(*begin) : step > 0 ? low : high;
  std::optional<Dim> to = end ? position(*end) : step > 0 ? high : low;
  if (!from || !to) return std::nullopt;
  Dim distance = step > 0 ? *to - *from : *from - *to;
  Dim count = CeilDiv(distance, Dim(step > 0 ? step : -step));
  // A range from the first index or to the last one never runs backwards.
  bool forward = *from == (step > 0 ? low : high) || *to == (step > 0 ? high : low);
  return forward ? count : Max(count, Dim(0));
}

// The shape of a slice of x. Sets `ranges` to its indices if all bounds are known.
Shape SliceShape(InferContext& context, std::optional<std::vector<Range>>& ranges) {
  const Shape& x = context.shape("x");
  Spec spec = ReadSpec(context);
  auto begin = context.Elements("begin"), end = context.Elements("end");
  Shape shape;
  ranges.emplace();
  for (size_t d = 0; d < x.size(); ++d) {
    auto bound = [&](const std::optional<std::vector<Dim>>& elements, bool masked) {
      return elements && !masked ? std::optional<Dim>((*elements)[d]) : std::nullopt;
    };
    auto known = [](const std::optional<Dim>& dim) {
      return dim ? std::optional<int64_t>(dim->constant()) : std::nullopt;
    };
    std::optional<Dim> from = bound(begin, spec.begin_mask[d]);
    if (spec.squeeze[d]) {
      if (!begin && !spec.begin_mask[d]) {
        ranges.reset();
      } else if (Dim at = from.value_or(Dim(0)); !at.is_constant() || !x[d].is_constant()) {
        ranges.reset();
      } else {
        int64_t index = Saturate(at.constant()), size = x[d].constant();
        if (index < -size || index >= size)
          context.Fail("index {} is out of range for dimension {} of size {}", at.constant(), d,
                       ToString(x));
        if (ranges) ranges->push_back({index < 0 ? index + size : index, 1, 1});
      }
      continue;
    }
    std::optional<Dim> to = bound(end, spec.end_mask[d]);
    if ((!begin && !spec.begin_mask[d]) || (!end && !spec.end_mask[d])) {
      ranges.reset();
      shape.push_back(context.Fresh("slice"));
    } else if (x[d].is_constant() && (!from || from->is_constant()) && (!to || to->is_constant())) {
      Range range = Resolve(x[d].constant(), known(from), known(to), spec.stride[d]);
      if (ranges) ranges->push_back(range);
      shape.push_back(range.count);
    } else if (spec.begin_mask[d] && spec.end_mask[d] && std::abs(spec.stride[d]) == 1) {
      ranges.reset();
      shape.push_back(x[d]);
    } else {
      ranges.reset();
      std::optional<Dim> count = SymbolicCount(context, x[d], from, to, spec.stride[d]);
      shape.push_back(count ? *count : context.Fresh("slice"));
    }
  }
  return shape;
}

// Sets the elements of a vector at the indices of a range.
void PickElements(InferContext& context, const std::optional<std::vector<Range>>& ranges) {
  if (context.rank("x") != 1 || !ranges) return;
  std::optional<std::vector<Dim>> constant;
  const std::vector<Dim>* elements =
      IsInteger(context.dtype("x")) ? context.KnownElements("x") : nullptr;
  if (!elements && (constant = WholeElements(context, "x"))) elements = &*constant;
  if (!elements) return;
  std::vector<Dim> picked;
  Range range = ranges->at(0);
  for (int64_t i = 0; i < range.count; ++i)
    picked.push_back((*elements)[range.begin + i * range.step]);
  context.Elements(std::move(picked));
}

void InferSliceByIndex(InferContext& context) {
  std::optional<std::vector<Range>> ranges;
  context.Result(context.dtype("x"), SliceShape(context, ranges));
  PickElements(context, ranges);
}

// A slice of x as strides over its elements; dims include squeezed dimensions.
struct Window {
  Dims dims, strides;
  int64_t base = 0;
};

Window MakeWindow(const Dims& x, const std::vector<Range>& ranges) {
  Window window;
  Dims own = StridesOf(x);
  for (size_t d = 0; d < x.size(); ++d) {
    window.dims.push_back(ranges[d].count);
    window.strides.push_back(ranges[d].count > 1 ? ranges[d].step * own[d] : 0);
    if (ranges[d].count > 0) window.base += ranges[d].begin * own[d];
  }
  return window;
}

Window SliceWindow(const EvalContext& context) {
  Dims x = context.in("x").dims();
  Spec spec = ReadSpec(context);
  std::vector<int64_t> begin = context.Ints("begin"), end = context.Ints("end");
  std::vector<Range> ranges;
  for (size_t d = 0; d < x.size(); ++d) {
    std::optional<int64_t> from, to;
    if (!spec.begin_mask[d]) from = begin[d];
    if (!spec.end_mask[d]) to = end[d];
    if (!spec.squeeze[d]) {
      ranges.push_back(Resolve(x[d], from, to, spec.stride[d]));
      continue;
    }
    int64_t index = Saturate(from.value_or(0));
    if (index < -x[d] || index >= x[d])
      context.Fail("index {} is out of range for dimension {} of size {}", index, d, x[d]);
    ranges.push_back({index < 0 ? index + x[d] : index, 1, 1});
  }
  return MakeWindow(x, ranges);
}

void EvalSliceByIndex(EvalContext& context) {
  Window window = SliceWindow(context);
  context.Set(StridedView(context.in("x"), window.dims, window.strides, window.base)
                  .Reshaped(context.out_dims()));
}

void InferSliceUpdate(InferContext& context) {
  std::optional<std::vector<Range>> ranges;
  Shape shape = SliceShape(context, ranges);
  if (context.dtype("update") != context.dtype("x") || !MayEqual(context.shape("update"), shape))
    context.Fail("update is {}, but the slice is {} {}", context.type("update").ToString(),
                 Name(context.dtype("x")), ToString(shape));
  context.Result(context.type("x"));
}

void EvalSliceUpdate(EvalContext& context) {
  Tensor update = context.in("update");
  const Window window = SliceWindow(context);
  if (ElementCount(window.dims) != update.size())
    context.Fail("update is {}, but the slice has {} elements", context.type("update").ToString(),
                 ElementCount(window.dims));
  context.Set(DispatchWidth(update.dtype(), [&]<class Word>(Word) {
    Pin<Word> pinned = update.data<Word>();
    const Word* from = pinned.data();
    std::byte* bytes = nullptr;
    Tensor out = context.Change("x", &bytes);
    Word* to = reinterpret_cast<Word*>(bytes) + window.base;
    auto walk = [window, to](auto&& f) {
      Walk<1>(window.dims, {window.strides}, [&](int64_t offset) { f(to[offset]); });
    };
    if (context.on_change) {
      std::vector<Word> old;
      walk([&](Word& x) { old.push_back(x); });
      context.on_change([walk, old = std::move(old)] {
        const Word* next = old.data();
        walk([&](Word& x) { x = *next++; });
      });
    }
    walk([&](Word& x) { x = *from++; });
    return out;
  }));
}

// slice_by_size. A size of -1 extends to the end; unlike in slice_by_index, bounds are not clamped.
void InferSliceBySize(InferContext& context) {
  const Shape& x = context.shape("x");
  CheckLength(context, "begin");
  CheckLength(context, "size");
  auto begin = context.Elements("begin"), size = context.Elements("size");
  Shape shape;
  std::optional<std::vector<Range>> ranges(std::in_place);
  for (size_t d = 0; d < x.size(); ++d) {
    std::optional<Dim> from;
    if (begin && context.Bounds((*begin)[d]).low >= 0) from = (*begin)[d];
    if (begin && context.Bounds((*begin)[d]).high < 0) from = (*begin)[d] + x[d];
    std::optional<Dim> count;
    if (size && (*size)[d] == Dim(-1)) {
      if (from) count = x[d] - *from;
    } else if (size && context.Bounds((*size)[d]).low >= 0) {
      count = (*size)[d];
    } else if (size && (*size)[d].is_constant()) {
      context.Fail("invalid size {}", (*size)[d].constant());
    }
    // The remainder after the slice; a negative one means that the slice does not fit.
    bool fits = !from || context.Bounds(*from).high >= 0;
    if (from && count) {
      Dim left = x[d] - *from - *count;
      fits =
          fits && !(left.is_constant() && left.constant() < 0) && context.Bounds(*count).high >= 0;
    }
    if (!fits)
      context.Fail("slice from {} exceeds dimension {} of size {}", (*begin)[d].ToString(), d,
                   ToString(x));
    shape.push_back(count ? *count : context.Fresh("slice"));
    if (from && from->is_constant() && count && count->is_constant() && ranges)
      ranges->push_back({from->constant(), 1, count->constant()});
    else
      ranges.reset();
  }
  context.Result(context.dtype("x"), std::move(shape));
  PickElements(context, ranges);
}

void EvalSliceBySize(EvalContext& context) {
  Tensor x = context.in("x");
  Dims out = context.out_dims();
  std::vector<int64_t> begin = context.Ints("begin");
  std::vector<Range> ranges;
  for (int d = 0; d < x.rank(); ++d) {
    int64_t from = begin[d] < 0 ? begin[d] + x.dims()[d] : begin[d];
    if (from < 0 || from > x.dims()[d] || out[d] > x.dims()[d] - from)
      context.Fail("slice of {} from {} exceeds dimension {} of size {}", out[d], begin[d], d,
                   x.dims()[d]);
    ranges.push_back({from, 1, out[d]});
  }
  Window window = MakeWindow(x.dims(), ranges);
  context.Set(StridedView(x, window.dims, window.strides, window.base));
}

void InferSlidingWindows(InferContext& context) {
  Shape shape = context.shape("x");
  int axis = OpContext::Axis(context.Int("axis"), context.rank("x"));
  int64_t size = context.Int("size"), stride = context.Int("stride");
  if (size < 1 || stride < 1 || (shape[axis].is_constant() && size > shape[axis].constant()))
    context.Fail("windows of {} with stride {} do not fit in dimension {} of size {}", size, stride,
                 axis, ToString(shape));
  shape[axis] = FloorDiv(shape[axis] - Dim(size), Dim(stride)) + Dim(1);
  shape.insert(shape.begin() + axis + 1, Dim(size));
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalSlidingWindows(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  Dims strides = StridesOf(x.dims());
  strides.insert(strides.begin() + axis,
                 context.out_dims()[axis] > 1 ? strides[axis] * context.Int("stride") : 0);
  context.Set(StridedView(x, context.out_dims(), strides));
}

Interval RangeUpdate(const RangeContext& context, int) {
  return Join(context.in("x"), context.in("update"));
}

// One element of a constant vector; nullopt if unknown.
std::optional<double> Element(const Operation& op, std::string_view param, size_t d) {
  Tensor vector = op.def->Find(param) >= 0 ? op.constant(param) : Tensor();
  auto at = static_cast<int64_t>(d);
  return vector && at < vector.size() ? std::optional(vector.Double(at)) : std::nullopt;
}

// Slices should not be empty: if both bounds are run-time values, begin is in the first half and
// end is after it.
OperandConstraint WantOfSliceBound(const ConstraintContext& context) {
  const Operation& op = context.op;
  std::string_view param = context.param;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Shape shape = op.arg("x")[0].type().shape;
  OperandConstraint constraint =
      OperandConstraint::Bounded(-kInfinity, kInfinity, fmt::format("{} of {}", param, Quoted(op)));
  bool begins = param == "begin";
  for (size_t d = 0; d < shape.size(); ++d) {
    double size = context.Size(shape[d]);
    auto from_front = [&](std::optional<double> place) {
      return place && *place < 0 ? *place + size : place;
    };
    std::optional<double> begin = from_front(Element(op, "begin", d)),
                          end = from_front(Element(op, "end", d)), length = Element(op, "size", d);
    if (Element(op, "begin_mask", d).value_or(0) != 0) begin = 0;
    if (Element(op, "end_mask", d).value_or(0) != 0 || length == -1.0) end = size;
    if (length && *length > 0) end = size - *length + 1;  // the last valid begin, plus 1
    Interval part{0, begins ? end.value_or(std::floor((size + 1) / 2)) - 1 : size};
    if (!begins) part.low = begin.value_or(std::floor(size / 2)) + 1;
    if (param == "size") part = {1, size - begin.value_or(std::floor((size - 1) / 2))};
    if (op.def->Find("update") >= 0) {
      const Shape update = op.arg("update")[0].type().shape;
      double taken = d < update.size() ? context.Size(update[d]) : 1;
      part = begins ? Interval{0, size - taken} : Interval{taken, size};
    }
    part.high = std::max(part.low, part.high);
    constraint.parts.emplace_back(part.low, part.high);
    // Bounds that a mask disables may have any value.
    if (param != "size" && Element(op, begins ? "begin_mask" : "end_mask", d).value_or(0) != 0)
      continue;
    constraint.low = std::max(constraint.low, part.low);
    constraint.high = std::max(constraint.low, std::min(constraint.high, part.high));
  }
  return constraint;
}

constexpr OpRow kSliceRows[] = {
    {.name = "slice_by_index",
     .doc = "x[begin:end:stride] as in NumPy; squeeze_mask selects the single index begin",
     .signatures =
         {{{kIos15,
            "x:T begin:int32 end:int32 stride:int32!? begin_mask:bool!? end_mask:bool!? "
            "squeeze_mask:bool!? | T=fp16/fp32/int32/bool"},
           {kIos17,
            "x:T begin:U end:U stride:U!? begin_mask:bool!? end_mask:bool!? squeeze_mask:bool!? | "
            "T=fp16/fp32/int8/int16/int32/uint8/uint16/bool U=int8/int16/int32"}}},
     .infer = InferSliceByIndex,
     .eval = EvalSliceByIndex,
     .moves = Moves::kView,
     .layout = {.data = {"x"},
                .per_dimension = {"begin", "end", "stride", "begin_mask", "end_mask",
                                  "squeeze_mask"}},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX,
     .constraints = {{{"begin", WantOfSliceBound}, {"end", WantOfSliceBound}}}},
    {.name = "slice_by_size",
     .doc = "size elements of x starting at begin in each dimension; -1: up to the end",
     .signatures = {{{kIos15, "x:T begin:int32 size:int32 | T=fp16/fp32/int32/bool"},
                     {kIos17,
                      "x:T begin:U size:U | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool "
                      "U=int8/int16/int32"}}},
     .infer = InferSliceBySize,
     .eval = EvalSliceBySize,
     .moves = Moves::kView,
     .layout = {.data = {"x"}, .per_dimension = {"begin", "size"}},
     .fp16 = {.carries = kPlaces},
     .range = RangeOfX,
     .constraints = {{{"begin", WantOfSliceBound}, {"size", WantOfSliceBound}}}},
    {.name = "slice_update",
     .doc = "x with x[begin:end:stride] replaced by update",
     .signatures = {{{kIos18,
                      "x:T update:T begin:U end:U stride:U!? begin_mask:bool!? end_mask:bool!? "
                      "squeeze_mask:bool!? | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool "
                      "U=int8/int16/int32"}}},
     .infer = InferSliceUpdate,
     .eval = EvalSliceUpdate,
     .range = RangeUpdate,
     .constraints = {{{"begin", WantOfSliceBound}, {"end", WantOfSliceBound}}}},
    {.name = "sliding_windows",
     .doc = "windows of the given size and stride along axis, in a new dimension after axis",
     .signatures = {{{kIos15, "x:T axis:int32! size:int32! stride:int32!=1 | T=fp16/fp32/int32"},
                     {kIos17,
                      "x:T axis:int32! size:int32! stride:int32!=1 | "
                      "T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferSlidingWindows,
     .eval = EvalSlidingWindows,
     .moves = Moves::kCopies,
     .range = RangeOfX},
};

}  // namespace

std::span<const OpRow> SliceRows() { return kSliceRows; }

}  // namespace mlc
