// frontends/onnx/need.h - sizes that must agree for an operator to compute anything.
//
// What the model leaves open is narrowed to the sizes with which they do, and a note says why;
// where one size alone is left, or two are one, the import begins anew with that, as if the model
// had said so. What the data decide is checked at run time, by operations that cannot be computed
// else. In a branch or a loop's body, which may never run, nothing is narrowed.
#pragma once

#include <functional>
#include <string>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Whether `low` <= dim <= `high` for all sizes that inputs may have, once they are narrowed. Error
// "bad-operand" where no size is left; `text` says what is needed ("dimension 0 of [n, 3] must be
// 1"). False: the run time must look.
bool Need(Node& node, const Dim& dim, int64_t low, int64_t high, const std::string& text);

// x, whose dimension `axis` is `size`.
Value* Sized(Node& node, Value* x, int axis, int64_t size, const std::string& text);

// Dimension `i` of a and `j` of b are equal, those of `what`; what the run time must look at
// replaces one of them.
void Agree(Node& node, Value*& a, int i, Value*& b, int j, const std::string& what);

// y in the shape of x, which broadcasting has not enlarged.
Value* OfShape(Node& node, Value* y, Value* x, const std::string& what);

// All dimensions of a and b are equal, beside `but`.
void AgreeAll(Node& node, Value*& a, Value*& b, const std::string& what, int but = -1);

// x plus a vector as long as its last dimension.
Value* PlusLast(Node& node, Value* x, Value* bias);

// The length of an integer vector; Error "needs-constant" when only the run time knows it.
int64_t VectorLength(Node& node, const Value* vector, std::string_view operand);

// Sizes of parts, a vector of the run time, that must be all of dimension `axis` of x together.
Value* AllParts(Node& node, Value* x, int axis, Value* sizes);

// A value that must have one element, as a scalar.
Value* Single(Node& node, Value* value, const std::string& what);

// value, which the run time refuses to give where an element of `ok` is false.
Value* Guarded(Node& node, Value* value, Value* ok);
// Integers that must lie within [low, high]; null: no such bound.
Value* Within(Node& node, Value* value, Value* low, Value* high);

// Leaves the one symbol of `dim`, an open size of an input, the sizes for which `fits`, or the
// whole range between them where they are not all in a row. Nothing when there is no such symbol,
// and when no size would be left, which changes nothing.
struct Narrowed {
  std::string name;  // as --dim knows it
  Symbol left;
  bool all;  // each size that is left fits
};
std::optional<Narrowed> Narrow(Node& node, const Dim& dim, const std::function<bool(int64_t)>& fits,
                               const std::string& why);

}  // namespace mlc::onnx
