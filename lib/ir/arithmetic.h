// lib/ir/arithmetic.h - shorthands that lowerings use to build common operations.
//
// An operand x, y, a or b is a value, a tensor or a number; a number takes the dtype of the
// parameter (lib/ir/builder.h). Type inference, folding and errors are those of the operation that
// is built.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

// The numbers from `first` to below `end`, such as the axes of a tensor.
std::vector<int64_t> Consecutive(int64_t first, int64_t end);

// A binary operation: Binary(b, "add", x, 1.0).
template <class X, class Y>
Value* Binary(Builder& b, std::string_view op, X x, Y y) {
  return b.Make(op, {{"x", std::move(x)}, {"y", std::move(y)}});
}

// Broadcasts one branch of a select to the full result shape if only the condition has some
// dimension: Apple's tools infer the shape of a select from its branches alone. Returns any other
// value unchanged.
Value* SelectInFull(Builder& b, Value* select);
// Elementwise choice: a where cond is true, else b.
template <class A, class B>
Value* Select(Builder& builder, Value* cond, A a, B b) {
  return SelectInFull(
      builder, builder.Make("select", {{"cond", cond}, {"a", std::move(a)}, {"b", std::move(b)}}));
}
// The logical and of x and y. Either may be null; the result is then the other one.
Value* And(Builder& b, Value* x, Value* y);

Value* Transposed(Builder& b, Value* x, const std::vector<int64_t>& perm);
// Inserts dimensions of size 1; `axes` are their positions in the result.
Value* Expanded(Builder& b, Value* x, const std::vector<int64_t>& axes);
// Removes dimensions of size 1.
Value* Squeezed(Builder& b, Value* x, const std::vector<int64_t>& axes);
// A reduction: Reduced(b, "reduce_sum", x, {-1}, true).
Value* Reduced(Builder& b, std::string_view op, Value* x, const std::vector<int64_t>& axes,
               bool keep_dims);
Value* Concat(Builder& b, std::vector<Value*> values, int64_t axis);
// Splits dimension `axis` into consecutive parts of these sizes.
std::vector<Value*> Parts(Builder& b, Value* x, const std::vector<int64_t>& sizes, int64_t axis);
// A reshape; the number -1 stands for the remaining size, as in MIL.
template <class X>
Value* WithShape(Builder& b, X x, const std::vector<int64_t>& shape) {
  return b.Make("reshape", {{"x", std::move(x)}, {"shape", Ints(shape)}});
}
// Reshapes a vector so that it lies along dimension `axis` of a tensor of this rank; the other
// dimensions are 1.
Value* VectorAlong(Builder& b, Value* vector, int64_t axis, int64_t rank);
// Takes the elements from `begin` to `end` in each dimension, as slice_by_index does; where `to_end`
// is set, those up to the end.
Value* SliceBetween(Builder& b, Value* x, const std::vector<int64_t>& begin,
                    const std::vector<int64_t>& end, const std::vector<bool>& to_end = {});
// Takes `size` elements from `begin` on in each dimension; the size -1 extends to the end.
Value* SliceOfSize(Builder& b, Value* x, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& size);
// Takes the elements from `begin` to `end` along `axis`; `squeeze` removes that dimension.
Value* SliceAlong(Builder& b, Value* x, int64_t axis, int64_t begin, int64_t end, bool squeeze);
// Takes element `index` along `axis` and removes that dimension.
Value* Element(Builder& b, Value* x, int64_t index, int axis);
// Gathers rows of a table: the dimensions of `indices` replace its outermost dimension. Indices are
// non-negative.
Value* Rows(Builder& b, Value* table, Value* indices);

}  // namespace mlc
