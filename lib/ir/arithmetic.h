// lib/ir/arithmetic.h - shorthands for the operations that lowerings are made of.
//
// Operands x, y, a and b are values, tensors or numbers; a number takes the type that the parameter
// wants (lib/ir/builder.h). Types, folding and errors are the operation's own.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

// An operation of two operands: Binary(b, "add", x, 1.0).
template <class X, class Y>
Value* Binary(Builder& b, std::string_view op, X x, Y y) {
  return b.Make(op, {{"x", std::move(x)}, {"y", std::move(y)}});
}

// The result of a select, whose condition may be the only operand that has some dimension of it:
// Apple's tools take the shape of a select from its values alone, so one of them gets it too.
// Anything else as it is.
Value* SelectInFull(Builder& b, Value* select);
// a where the bool value is true, else b.
template <class A, class B>
Value* Select(Builder& builder, Value* cond, A a, B b) {
  return SelectInFull(
      builder, builder.Make("select", {{"cond", cond}, {"a", std::move(a)}, {"b", std::move(b)}}));
}
// x and y, either of which may be null: the other.
Value* And(Builder& b, Value* x, Value* y);

Value* Transposed(Builder& b, Value* x, const std::vector<int64_t>& perm);
// With dimensions of size 1 that stand at `axes` in the result.
Value* Expanded(Builder& b, Value* x, const std::vector<int64_t>& axes);
Value* Concat(Builder& b, std::vector<Value*> values, int64_t axis);
// Consecutive parts of dimension `axis`.
std::vector<Value*> Parts(Builder& b, Value* x, const std::vector<int64_t>& sizes, int64_t axis);
// Element `index` of dimension `axis`, which goes away.
Value* Element(Builder& b, Value* x, int64_t index, int axis);
// Rows of a table: its outermost dimension becomes those of `indices`, which count from the front.
Value* Rows(Builder& b, Value* table, Value* indices);

}  // namespace mlc
