// Simplifies operations that only move elements.
//
//   gather(x, [2, 3, 4], axis = 1)                 ->   slice_by_index(x, 2 to 5 of dimension 1)
//   gather(x, 2, axis = 1)                         ->   the same with squeeze_mask
//   concat(split(x, axis = 1), axis = 1)           ->   x              all parts, in order
//   transpose(stack(split(x [2, 6], 2), axis = 0), [1, 0, 2])
//                                                  ->   reshape(x, [2, 2, 3])
//   concat(expand_dims(a), expand_dims(b))         ->   stack(a, b)    along the new dimension, up to three
//   concat(concat(a, b), c)                        ->   concat(a, b, c)
//   slice_by_index(concat(a, b)), inside b         ->   slice_by_index(b)
//   slice_by_index(concat(a, b, c)), b and c       ->   concat(b, c)
//   slice_by_index(x), slice_by_index(x) ...       ->   split(x)       if they cover x
//   slice_by_index(slice_by_index(x))              ->   slice_by_index(x)
//   reshape(transpose(reshape(concat(a, b))))      ->   concat(a, b, interleave = true)
//                                                       if it shuffles the channels of a and b
//
// Must not fire if indices are computed (slices), if a part of a stack or a concat has other users,
// if an inner concat has other users or interleaves, or if a slice has a stride or covers parts of
// two values. A slice with other users is only merged into slices with
// strides, which cannot become a split, if this leaves it unused; a shuffle is only merged if a and
// b have the same shape and no other operation uses the reshaped concat. No numeric effect.
//
// Operators by name: the data movement that it matches and creates.
#include "lib/ir/arithmetic.h"
#include "lib/ops/form_params.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool GatherOfRun(Operation* op, PassContext& context) {
  if (!op->is("gather")) return false;
  Value* x = op->value("x");
  Tensor indices = op->constant("indices");
  if (!x || x->is_constant() || !indices || indices.rank() > 1 || indices.size() == 0) return false;
  if (Tensor batch = op->constant_or_default("batch_dims"); !batch || batch.Int(0) != 0)
    return false;
  Tensor axis_tensor = op->constant_or_default("axis");
  if (!axis_tensor) return false;
  int64_t axis = axis_tensor.Int(0);
  if (axis < 0) axis += x->type.rank();
  const Dim& size = x->type.shape[axis];
  std::vector<int64_t> run = indices.Ints();
  for (size_t i = 0; i < run.size(); ++i) {
    if (run[i] < 0 && size.is_constant()) run[i] += size.constant();
    if (run[i] < 0 || run[i] != run[0] + static_cast<int64_t>(i)) return false;
  }
  if (size.is_constant() && run.back() >= size.constant()) return false;
  if (!size.is_constant() && indices.rank() == 1) return false;  // a slice would be truncated
  Builder builder = BuilderBefore(op, context);
  Value* slice = SliceAlong(builder, x, axis, run[0], run.back() + 1, indices.rank() == 0);
  return Replace(op, slice);
}

struct Concat {
  Operation* op = nullptr;
  int64_t axis = 0;
};
std::optional<Concat> PlainConcat(const Value* value) {
  Operation* op = DefinedBy(value, "concat");
  if (!op || op->arg("values")[0].type().shape.empty()) return std::nullopt;
  auto axes = ConstantAxes(*op, "axis", value->type.rank());
  Tensor interleave = op->constant_or_default("interleave");
  if (!axes || !interleave || interleave.Bool(0)) return std::nullopt;
  return Concat{op, (*axes)[0]};
}

bool ConcatOfSplit(Operation* op, PassContext&) {
  std::optional<Concat> concat = op->is("concat") ? PlainConcat(op->result()) : std::nullopt;
  if (!concat) return false;
  Operation* split = DefinedBy(op->value("values"), "split");
  const Operands& values = op->arg("values");
  if (!split || split->results.size() != values.size() || !split->value("x")) return false;
  Value* x = split->value("x");
  auto axes = ConstantAxes(*split, "axis", x->type.rank());
  if (!axes || (*axes)[0] != concat->axis || !(x->type == op->result()->type) ||
      !CanReplace(op->result(), x))
    return false;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].value != split->result(static_cast<int>(i))) return false;
  return Replace(op, x);
}

// The directions of a bidirectional layer: ONNX has them in a dimension of their own, in front of the
// batch, from where they usually return.
bool TransposeOfStack(Operation* op, PassContext& context) {
  Operation* stack = op->is("transpose") ? DefinedBy(op->value("x"), "stack") : nullptr;
  Operation* split = stack ? DefinedBy(stack->value("values"), "split") : nullptr;
  if (!split || !split->value("x") || !SoleUser(stack->result())) return false;
  Value* x = split->value("x");
  const int rank = x->type.rank();
  const Operands& values = stack->arg("values");
  const auto axes = ConstantAxes(*split, "axis", rank),
             place = ConstantAxes(*stack, "axis", rank + 1),
             perm = ConstantAxes(*op, "perm", rank + 1);
  const Value* part = split->result();
  const Dim& size = part->type.shape[rank - 1];
  if (!axes || !place || !perm || (*axes)[0] != rank - 1 || !size.is_constant() ||
      split->results.size() != values.size())
    return false;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].value != split->result(static_cast<int>(i)) ||
        !(values[i].value->type == part->type))
      return false;
  // The new dimension returns to its place before the parts.
  std::vector<int64_t> back = Consecutive(0, rank + 1);
  back.erase(back.begin() + (*place)[0]);
  back.insert(back.end() - 1, (*place)[0]);
  if (*perm != back) return false;
  std::vector<int64_t> shape;  // one unknown size follows from the others
  for (int i = 0; i + 1 < rank; ++i)
    shape.push_back(x->type.shape[i].is_constant() ? x->type.shape[i].constant() : -1);
  if (std::ranges::count(shape, -1) > 1) return false;
  shape.push_back(std::ssize(values));
  shape.push_back(size.constant());
  Builder builder = BuilderBefore(op, context);
  return Replace(op, WithShape(builder, x, shape));
}

bool ConcatOfExpanded(Operation* op, PassContext& context) {
  // Transpositions of more dimensions sink through expand_dims and concat, but not through stack.
  constexpr int kMostRank = 3;
  std::optional<Concat> concat = op->is("concat") ? PlainConcat(op->result()) : std::nullopt;
  if (!concat || op->result()->type.rank() > kMostRank) return false;
  std::vector<Value*> parts;
  for (const Operand& operand : op->arg("values")) {
    const Operation* expand = DefinedBy(operand.value, "expand_dims");
    if (!expand || SoleUser(operand.value) != op || !expand->value("x")) return false;
    const auto axes = ConstantAxes(*expand, "axes", op->result()->type.rank());
    if (!axes || *axes != std::vector{concat->axis}) return false;
    parts.push_back(expand->value("x"));
    if (!(parts.back()->type == parts[0]->type)) return false;
  }
  return parts.size() > 1 &&
         ReplaceBy(op, context, "stack", {{"values", parts}, {"axis", concat->axis}});
}

bool ConcatOfConcat(Operation* op, PassContext& context) {
  std::optional<Concat> outer = op->is("concat") ? PlainConcat(op->result()) : std::nullopt;
  if (!outer) return false;
  // The last concat of a chain absorbs the whole chain at once.
  auto takes = [&](const Operation* user, const Value* value) -> std::optional<Concat> {
    std::optional<Concat> inner = PlainConcat(value);
    bool merges = inner && inner->axis == outer->axis && SoleUser(value) == user;
    return merges ? inner : std::nullopt;
  };
  Operation* user = SoleUser(op->result());
  std::optional<Concat> next =
      user && user->is("concat") ? PlainConcat(user->result()) : std::nullopt;
  if (next && next->axis == outer->axis) return false;
  struct Part {
    const Operation* user;
    Operand operand;
  };
  std::vector<Part> open;  // in reverse order
  auto push = [&](const Operation* concat) {
    const Operands& values = concat->arg("values");
    for (auto it = values.rbegin(); it != values.rend(); ++it) open.push_back({concat, *it});
  };
  push(op);
  Operands flat;
  bool found = false;
  while (!open.empty()) {
    Part part = std::move(open.back());
    open.pop_back();
    std::optional<Concat> inner =
        part.operand.value ? takes(part.user, part.operand.value) : std::nullopt;
    if (inner) push(inner->op);
    if (!inner) flat.push_back(std::move(part.operand));
    found |= inner.has_value();
  }
  if (!found) return false;
  Builder::Args args = ArgsWithout(*op, {"values"});
  args.emplace_back("values", std::vector<Value*>());
  args.back().operands = std::move(flat);
  return ReplaceBy(op, context, "concat", std::move(args));
}

// The indices begin, begin + stride, ... below end of a dimension; the stride is positive.
struct Span {
  int64_t begin, end, stride;
};

// Returns the span of every dimension for a slice of a value with static shape.
std::optional<std::vector<Span>> Spans(const Operation& op) {
  Value* x = op.value("x");
  Tensor begin = op.constant("begin"), end = op.constant("end"), stride = op.constant("stride");
  if (!x || !begin || !end || !IsStatic(x->type.shape) || op.constant("squeeze_mask"))
    return std::nullopt;
  if (op.has("stride") && !stride) return std::nullopt;
  Tensor begin_mask = op.constant("begin_mask"), end_mask = op.constant("end_mask");
  std::vector<Span> spans;
  for (int i = 0; i < x->type.rank(); ++i) {
    int64_t size = x->type.shape[i].constant(), from = begin.Int(i), to = end.Int(i);
    int64_t step = stride ? stride.Int(i) : 1;
    if (step < 1) return std::nullopt;
    if (from < 0) from += size;
    if (to < 0) to += size;
    if (begin_mask && begin_mask.Bool(i)) from = 0;
    if (end_mask && end_mask.Bool(i)) to = size;
    spans.push_back({std::clamp<int64_t>(from, 0, size), std::clamp<int64_t>(to, 0, size), step});
  }
  return spans;
}
bool HasStride(const std::vector<Span>& spans) {
  return std::ranges::any_of(spans, [](const Span& span) { return span.stride != 1; });
}

// Returns {begin, end} of every dimension for a slice with stride 1 of a value with static shape.
std::optional<std::vector<std::pair<int64_t, int64_t>>> Bounds(const Operation& op) {
  std::optional<std::vector<Span>> spans = Spans(op);
  if (!spans || HasStride(*spans)) return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> bounds;
  for (const Span& span : *spans) bounds.emplace_back(span.begin, span.end);
  return bounds;
}

// Returns whether merging `value`, a slice, into its users leaves it unused: either its only user
// is a slice, or all are slices with strides.
bool CanMergeIntoUsers(const Value* value) {
  if (SoleUser(value)) return true;
  if (value->is_output()) return false;
  for (const Operation* user : value->users) {
    auto spans = user->is("slice_by_index") ? Spans(*user) : std::nullopt;
    if (user->block != value->def->block || !spans || !HasStride(*spans)) return false;
  }
  return true;
}

bool SliceOfSlice(Operation* op, PassContext& context) {
  if (!op->is("slice_by_index")) return false;
  Operation* first = DefinedBy(op->value("x"), "slice_by_index");
  auto outer = Spans(*op), inner = first ? Spans(*first) : std::nullopt;
  if (!outer || !inner || !CanMergeIntoUsers(first->result())) return false;
  std::vector<int64_t> begins, ends, strides;
  for (size_t i = 0; i < inner->size(); ++i) {
    const auto [from, to, step] = (*outer)[i];
    const Span& within = (*inner)[i];
    if (from >= to) return false;
    const int64_t last = from + (to - from - 1) / step * step;
    begins.push_back(within.begin + from * within.stride);
    ends.push_back(within.begin + last * within.stride + 1);
    strides.push_back(within.stride * step);
  }
  Builder::Args args = {{"x", first->value("x")}, {"begin", Ints(begins)}, {"end", Ints(ends)}};
  if (Uniform(Ints(strides)) != 1.0) args.emplace_back("stride", Ints(strides));
  return ReplaceBy(op, context, "slice_by_index", std::move(args));
}

bool SliceOfConcat(Operation* op, PassContext& context) {
  if (!op->is("slice_by_index")) return false;
  std::optional<Concat> concat = PlainConcat(op->value("x"));
  auto bounds = concat ? Bounds(*op) : std::nullopt;
  if (!bounds) return false;
  auto [begin, end] = (*bounds)[concat->axis];
  Operands whole;  // operands inside the slice
  int64_t first = 0, covered = 0;
  for (const Operand& operand : concat->op->arg("values")) {
    const Dim size = operand.type().shape[concat->axis];
    if (!size.is_constant() || !operand.value) return false;
    int64_t last = first + size.constant();
    if (begin >= first && end <= last && begin < end) {
      std::vector<int64_t> begins, ends;
      for (auto [from, to] : *bounds) {
        begins.push_back(from);
        ends.push_back(to);
      }
      begins[concat->axis] = begin - first;
      ends[concat->axis] = end - first;
      Builder builder = BuilderBefore(op, context);
      return Replace(op, SliceBetween(builder, operand.value, begins, ends));
    }
    if (begin <= first && last <= end) {
      whole.push_back(operand);
      covered += size.constant();
    }
    first = last;
  }
  for (int i = 0; i < static_cast<int>(bounds->size()); ++i)
    if (i != concat->axis &&
        (*bounds)[i] != std::pair<int64_t, int64_t>(0, op->value("x")->type.shape[i].constant()))
      return false;
  if (covered == 0 || covered != end - begin) return false;
  Builder::Args args = ArgsWithout(*concat->op, {"values"});
  args.emplace_back("values", Tensor());
  args.back().operands = std::move(whole);
  Value* joined = BuilderBefore(op, context).Make("concat", std::move(args));
  Function& function = *op->block->function;
  Replace(op, joined);
  InferUsers(joined, function);  // elements of a concat of sizes may be known now
  return true;
}

// Returns the cut of a slice that may be a part of a split.
std::optional<Cut> PartOfSplit(const Operation& op) {
  std::optional<Cut> cut = OnlyCut(op);
  return cut && !cut->squeezes && IsStatic(op.value("x")->type.shape) ? cut : std::nullopt;
}

// The first slice creates the split, and the others use it.
bool SlicesToSplit(Operation* op, PassContext& context) {
  std::optional<Cut> own = PartOfSplit(*op);
  if (!own) return false;
  Value* x = op->value("x");
  constexpr size_t kMostParts = 64;
  if (x->users.size() > kMostParts) return false;
  std::vector<Cut> cuts;
  for (Operation* user : x->users) {
    if (user->is("split") && user->block == op->block && user->value("x") == x) {
      auto axis = ConstantAxes(*user, "axis", x->type.rank());
      if (!axis || (*axis)[0] != own->axis) continue;
      int64_t begin = 0;
      for (const std::unique_ptr<Value>& part : user->results) {
        int64_t size = part->type.shape[own->axis].constant();
        if (begin == own->begin && begin + size == own->end &&
            CanReplace(op->result(), part.get()) && op->block->Precedes(user, op)) {
          return Replace(op, part.get());
        }
        begin += size;
      }
    }
    std::optional<Cut> cut = user->block == op->block ? PartOfSplit(*user) : std::nullopt;
    if (cut && cut->axis == own->axis) cuts.push_back(*cut);
  }
  std::ranges::sort(cuts, [](const Cut& a, const Cut& b) { return a.begin < b.begin; });
  std::vector<int64_t> sizes;
  int64_t at = 0;
  for (const Cut& cut : cuts) {
    if (cut.begin != at) return false;
    sizes.push_back(cut.end - cut.begin);
    at = cut.end;
  }
  if (sizes.size() < 2 || !(x->type.shape[own->axis] == Dim(at))) return false;
  Builder builder = BuilderBefore(op, context);
  std::vector<Value*> parts = builder.MakeAll(
      "split", {{"x", x}, {"split_sizes", Ints(sizes)}, {"axis", static_cast<int64_t>(own->axis)}});
  at = 0;
  for (size_t i = 0; i < parts.size(); at += sizes[i++])
    if (at == own->begin) Replace(op, parts[i]);
  return true;
}

// Returns the dimension that a transpose swaps with the next one, if it does nothing else.
std::optional<int> SwappedWithNext(const Operation& transpose) {
  auto perm = ConstantAxes(transpose, "perm", transpose.result()->type.rank());
  if (!perm) return std::nullopt;
  for (size_t i = 0; i + 1 < perm->size(); ++i) {
    if ((*perm)[i] == static_cast<int64_t>(i)) continue;
    std::swap((*perm)[i], (*perm)[i + 1]);
    return std::ranges::is_sorted(*perm) ? std::optional(static_cast<int>(i)) : std::nullopt;
  }
  return std::nullopt;
}

// The inner reshape splits the axis of the concat into [values, channels of each], the transpose
// swaps these two, and the outer reshape joins them.
bool ShuffleOfConcat(Operation* op, PassContext& context) {
  Operation* transpose = Reshapes(*op) ? DefinedBy(op->value("x"), "transpose") : nullptr;
  Value* parted = transpose && SoleUser(transpose->result()) ? transpose->value("x") : nullptr;
  if (!parted || !parted->def || !Reshapes(*parted->def) || !SoleUser(parted)) return false;
  const Value* joined = parted->def->value("x");
  std::optional<Concat> concat = PlainConcat(joined);
  std::optional<int> swapped = SwappedWithNext(*transpose);
  if (!concat || !swapped || !(joined->type == op->result()->type)) return false;
  const Operands& values = concat->op->arg("values");
  const Type each = values[0].type();
  if (!std::ranges::all_of(values, [&](const Operand& value) { return value.type() == each; }))
    return false;
  const Shape& shape = parted->type.shape;
  if (shape[*swapped] != Dim(static_cast<int64_t>(values.size())) ||
      shape[*swapped + 1] != each.shape[concat->axis] ||
      ProductFrom(shape, *swapped + 2) != ProductFrom(each.shape, concat->axis + 1))
    return false;
  Builder::Args args = ArgsWithout(*concat->op, {"interleave"});
  args.emplace_back("interleave", true);
  return ReplaceBy(op, context, "concat", std::move(args));
}

}  // namespace

extern const PassDef kSimplifyMoves = {
    "simplify-moves", "simplify gathers, slices, splits, stacks and concats",
    Rewrites<GatherOfRun, ConcatOfSplit, TransposeOfStack, ConcatOfExpanded, ConcatOfConcat,
             SliceOfConcat, SlicesToSplit, SliceOfSlice, ShuffleOfConcat>};

}  // namespace mlc::passes
