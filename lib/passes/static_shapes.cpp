// Replaces computed shapes and slice bounds by constants if type inference determines them, so that
// the arithmetic that computes them at run time becomes dead code.
//
//   s = shape(x); n = gather(s, 0); t = concat(n, 64); y = reshape(x, t)     x: [n, 8, 8]
//     ->   y = reshape(x, [-1, 64])
//   y = slice_by_index(x, begin, end = [1, n])                               x: [4, n]
//     ->   y = slice_by_index(x, begin, end = [1, 0], end_mask = [false, true])
//   y = slice_by_index(x, begin = [0, 0], end = [m, 4])                      x: [n, 4]
//     ->   y = slice_by_index(x, begin, end, begin_mask = end_mask = [false, true])
//
// Masks mark the dimensions of which all elements are used, so that tools that infer shapes from
// constants alone, such as coremltools, can infer them. A reshape may have one dynamic dimension
// (-1) besides unchanged ones (0, for equal ranks only). Must not fire if more is unknown, if a
// dimension is 0, or if a begin is not a number. No numeric effect.
//
// Operators by name: the operations with shape operands that it matches, and those that it creates.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool Reshape(Operation* op, PassContext& context) {
  if (!op->is("reshape") || !op->value("x") || !op->value("shape") || op->constant("shape"))
    return false;
  const Shape &to = op->result()->type.shape, &from = op->value("x")->type.shape;
  Tensor target = ShapeOperand(to);
  if (!target && to.size() == from.size()) {
    // Unchanged dimensions are 0; one other may be -1.
    Shape rest = to;
    bool zero = false;
    for (size_t i = 0; i < to.size(); ++i) {
      zero = zero || to[i] == Dim(0);
      if (to[i] == from[i] && !to[i].is_constant()) rest[i] = 1;
    }
    if (Tensor open = zero ? Tensor() : ShapeOperand(rest)) {
      std::vector<int64_t> dims = open.Ints();
      for (size_t i = 0; i < to.size(); ++i)
        if (to[i] == from[i] && !to[i].is_constant()) dims[i] = 0;
      target = Ints(dims);
    }
  }
  if (!target) return false;
  return ReplaceBy(op, context, "reshape", {{"x", op->value("x")}, {"shape", target}});
}

// Returns the operand's elements; nothing if not all are known.
std::optional<std::vector<Dim>> Elements(const Operation& op, std::string_view param) {
  if (Tensor constant = op.constant(param)) {
    std::vector<int64_t> numbers = constant.Ints();
    return std::vector<Dim>(numbers.begin(), numbers.end());
  }
  Value* value = op.value(param);
  return value ? value->elements : std::nullopt;
}

std::optional<std::vector<int64_t>> Numbers(const std::vector<Dim>& dims) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(dim.constant());
  }
  return numbers;
}

std::vector<bool> Mask(const Operation& op, std::string_view param, size_t rank) {
  std::vector<bool> mask(rank);
  if (Tensor tensor = op.constant(param))
    for (size_t i = 0; i < rank; ++i) mask[i] = tensor.Bool(static_cast<int64_t>(i));
  return mask;
}

// Returns the bounds as constants: a `begin` and an `end` for each dimension.
std::optional<std::pair<std::vector<int64_t>, std::vector<int64_t>>> ConstantBounds(
    const Shape& shape, std::vector<Dim> begin, std::vector<Dim> end,
    const std::vector<bool>& squeeze_mask, const std::vector<bool>& begin_mask,
    std::vector<bool>& end_mask) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (begin_mask[i]) begin[i] = 0;
    if (squeeze_mask[i] || end_mask[i]) end[i] = 0;
    if (end[i].is_constant()) continue;
    // Count from the end of the dimension; the end itself is expressed by end_mask.
    Dim rest = end[i] - shape[i];
    if (!rest.is_constant() || rest.constant() > 0) return std::nullopt;
    end[i] = rest;
    if (rest == Dim(0)) end_mask[i] = true;
  }
  auto first = Numbers(begin), last = Numbers(end);
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

bool SliceByIndex(Operation* op, PassContext& context) {
  if (!op->is("slice_by_index") || !op->value("x")) return false;
  if (op->constant("begin") && op->constant("end")) return false;
  const Shape& shape = op->value("x")->type.shape;
  auto begin = Elements(*op, "begin"), end = Elements(*op, "end");
  if (!begin || !end || begin->size() != shape.size() || end->size() != shape.size()) return false;
  std::vector<bool> begin_mask = Mask(*op, "begin_mask", shape.size()),
                    end_mask = Mask(*op, "end_mask", shape.size()),
                    squeeze_mask = Mask(*op, "squeeze_mask", shape.size());
  Builder::Args args = ArgsWithout(*op, {"begin", "end", "begin_mask", "end_mask"});
  std::vector<bool> ends = end_mask;
  if (auto bounds = ConstantBounds(shape, *begin, *end, squeeze_mask, begin_mask, ends)) {
    end_mask = ends;
    args.emplace_back("begin", Ints(bounds->first));
    args.emplace_back("end", Ints(bounds->second));
  } else {
    bool changed = false;
    Tensor stride = op->constant("stride");
    for (size_t i = 0; i < shape.size(); ++i) {
      if (squeeze_mask[i] || (begin_mask[i] && end_mask[i])) continue;
      if (stride && stride.Int(static_cast<int64_t>(i)) < 0) continue;
      if (!begin_mask[i] && !((*begin)[i] == Dim(0))) continue;
      if (!end_mask[i] && !((*end)[i] == shape[i])) continue;
      begin_mask[i] = end_mask[i] = changed = true;
    }
    if (!changed) return false;
    for (std::string_view bound : {"begin", "end"}) args.emplace_back(bound, op->arg(bound)[0]);
  }
  auto any = [](const std::vector<bool>& mask) {
    return std::ranges::find(mask, true) != mask.end();
  };
  if (any(begin_mask)) args.emplace_back("begin_mask", Tensor::Vector<bool>(begin_mask));
  args.emplace_back("end_mask", Tensor::Vector<bool>(end_mask));
  return ReplaceBy(op, context, "slice_by_index", std::move(args));
}

bool SliceBySize(Operation* op, PassContext& context) {
  if (!op->is("slice_by_size") || !op->value("x") || op->constant("size")) return false;
  const Shape& shape = op->value("x")->type.shape;
  auto begin = Elements(*op, "begin"), size = Elements(*op, "size");
  if (!begin || !size || begin->size() != shape.size() || size->size() != shape.size())
    return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((*size)[i].is_constant()) continue;
    if (!((*begin)[i] + (*size)[i] == shape[i])) return false;
    (*size)[i] = -1;
  }
  auto first = Numbers(*begin), count = Numbers(*size);
  if (!first || !count) return false;
  Builder::Args args = ArgsWithout(*op, {"begin", "size"});
  args.emplace_back("begin", Ints(*first));
  args.emplace_back("size", Ints(*count));
  return ReplaceBy(op, context, "slice_by_size", std::move(args));
}

}  // namespace

extern const PassDef kStaticShapes = {"static-shapes",
                                      "replace computed shapes and slice bounds by constants",
                                      Rewrites<Reshape, SliceByIndex, SliceBySize>};

}  // namespace mlc::passes
