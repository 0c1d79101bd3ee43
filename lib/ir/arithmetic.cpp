#include "lib/ir/arithmetic.h"

#include <numeric>

namespace mlc {

std::vector<int64_t> Consecutive(int64_t first, int64_t end) {
  std::vector<int64_t> numbers(end > first ? end - first : 0);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Value* SelectInFull(Builder& builder, Value* select) {
  Operation* op = select->def;
  if (!op || !op->is("select")) return select;
  const Shape result = select->type.shape;
  auto has = [&](std::string_view param, size_t i) {
    const Shape shape = op->arg(param)[0].type().shape;
    size_t missing = result.size() - shape.size();
    return i >= missing && shape[i - missing] == result[i];
  };
  bool full = true;
  for (size_t i = 0; i < result.size(); ++i) full = full && (has("a", i) || has("b", i));
  if (full) return select;
  Operand cond = op->arg("cond")[0], a = op->arg("a")[0], b = op->arg("b")[0];
  DType dtype = select->type.dtype;
  Tensor constant = b.constant();
  if (constant && constant.size() == 1 && IsStatic(result)) {
    b = builder.Const(Tensor::Full(dtype, StaticDims(result), constant.Double(0)));
  } else if (dtype == DType::kBool) {
    Value* other = builder.Make("logical_not", {{"x", cond}});
    Value* none = builder.Make("logical_and", {{"x", cond}, {"y", other}});
    b = builder.Make("logical_or", {{"x", none}, {"y", b}});
  } else {
    Value* none = builder.Make(
        "mul", {{"x", builder.Cast(cond.value, dtype)}, {"y", Tensor::Full(dtype, {}, 0)}});
    b = builder.Make("add", {{"x", none}, {"y", b}});
  }
  return builder.Make("select", {{"cond", cond}, {"a", a}, {"b", b}});
}

Value* And(Builder& b, Value* x, Value* y) {
  return x && y ? Binary(b, "logical_and", x, y) : x ? x : y;
}

Value* Transposed(Builder& b, Value* x, const std::vector<int64_t>& perm) {
  return b.Make("transpose", {{"x", x}, {"perm", Ints(perm)}});
}

Value* Expanded(Builder& b, Value* x, const std::vector<int64_t>& axes) {
  return b.Make("expand_dims", {{"x", x}, {"axes", Ints(axes)}});
}

Value* Squeezed(Builder& b, Value* x, const std::vector<int64_t>& axes) {
  return b.Make("squeeze", {{"x", x}, {"axes", Ints(axes)}});
}

Value* Reduced(Builder& b, std::string_view op, Value* x, const std::vector<int64_t>& axes,
               bool keep_dims) {
  return b.Make(op, {{"x", x}, {"axes", Ints(axes)}, {"keep_dims", keep_dims}});
}

Value* Concat(Builder& b, std::vector<Value*> values, int64_t axis) {
  return b.Make("concat", {{"values", std::move(values)}, {"axis", axis}});
}

std::vector<Value*> Parts(Builder& b, Value* x, const std::vector<int64_t>& sizes, int64_t axis) {
  return b.MakeAll("split", {{"x", x}, {"split_sizes", Ints(sizes)}, {"axis", axis}});
}

Value* VectorAlong(Builder& b, Value* vector, int64_t axis, int64_t rank) {
  std::vector<int64_t> shape(rank, 1);
  shape[axis] = -1;
  return WithShape(b, vector, shape);
}

Value* SliceBetween(Builder& b, Value* x, const std::vector<int64_t>& begin,
                    const std::vector<int64_t>& end, const std::vector<bool>& to_end) {
  Builder::Args args = {{"x", x}, {"begin", Ints(begin)}, {"end", Ints(end)}};
  if (!to_end.empty()) args.emplace_back("end_mask", Tensor::Vector<bool>(to_end));
  return b.Make("slice_by_index", std::move(args));
}

Value* SliceOfSize(Builder& b, Value* x, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& size) {
  return b.Make("slice_by_size", {{"x", x}, {"begin", Ints(begin)}, {"size", Ints(size)}});
}

Value* SliceAlong(Builder& b, Value* x, int64_t axis, int64_t begin, int64_t end, bool squeeze) {
  size_t rank = x->type.shape.size();
  std::vector<int64_t> begins(rank), ends(rank);
  std::vector<bool> whole(rank, true), squeezed(rank);
  begins[axis] = begin;
  ends[axis] = end;
  whole[axis] = false;
  squeezed[axis] = squeeze;
  Builder::Args args = {{"x", x},
                        {"begin", Ints(begins)},
                        {"end", Ints(ends)},
                        {"begin_mask", Tensor::Vector<bool>(whole)},
                        {"end_mask", Tensor::Vector<bool>(whole)}};
  if (squeeze) args.emplace_back("squeeze_mask", Tensor::Vector<bool>(squeezed));
  return b.Make("slice_by_index", std::move(args));
}

Value* Element(Builder& b, Value* x, int64_t index, int axis) {
  return SliceAlong(b, x, axis, index, index + 1, true);
}

Value* Rows(Builder& b, Value* table, Value* indices) {
  return b.Make("gather", {{"x", table}, {"indices", indices}, {"axis", 0}});
}

}  // namespace mlc
