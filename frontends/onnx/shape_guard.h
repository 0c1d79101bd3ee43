// frontends/onnx/shape_guard.h - requirements of operators on sizes, such as equal dimensions.
//
// A requirement on a flexible dimension of a model input narrows its range to the valid sizes,
// and a note gives the reason. When only one size is left, or two dimensions must be equal, the
// import restarts as if the model had declared that. Sizes that depend on data are checked at run
// time by operations that fail on invalid values. Nothing is narrowed inside a branch or a loop
// body, because it may never run.
#pragma once

#include <functional>
#include <string>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Requires `low` <= dim <= `high` and narrows input sizes accordingly. Returns whether the
// requirement holds for every size that remains; if not, the caller must add a run-time check. Throws "bad-operand" when no
// size is left; `text` states the requirement ("dimension 0 of [n, 3] must be 1").
bool RequireSize(Node& node, const Dim& dim, int64_t low, int64_t high, const std::string& text);

// Returns x with dimension `axis` required to be `size`.
Value* Sized(Node& node, Value* x, int axis, int64_t size, const std::string& text);

// Requires dimension `i` of a to equal dimension `j` of b; `what` names them in messages. If a
// run-time check is needed, a or b is replaced by the checked value.
void RequireEqualSize(Node& node, Value*& a, int i, Value*& b, int j, const std::string& what);

// Returns y, required to have the shape of x, so that a broadcast has not enlarged it.
Value* OfShape(Node& node, Value* y, Value* x, const std::string& what);

// Requires all dimensions of a and b except `but` to be equal.
void RequireSameShape(Node& node, Value*& a, Value*& b, const std::string& what, int but = -1);

// Returns x plus a vector whose length is the last dimension of x.
Value* PlusLast(Node& node, Value* x, Value* bias);

// Returns the length of an integer vector. Throws "needs-constant" when it is computed at run time.
int64_t VectorLength(Node& node, const Value* vector, std::string_view operand);

// Returns `sizes`, a run-time vector, required to add up to dimension `axis` of x.
Value* AllParts(Node& node, Value* x, int axis, Value* sizes);

// Returns a value, required to have one element, as a scalar.
Value* Single(Node& node, Value* value, const std::string& what);

// Returns `value`; fails at run time if an element of `ok` is false.
Value* Guarded(Node& node, Value* value, Value* ok);
// Returns integers, required to lie within [low, high]; null means no bound.
Value* Within(Node& node, Value* value, Value* low, Value* high);

// Narrows the only symbol of `dim`, a flexible input dimension, to the sizes for which `fits`
// holds, or to the range that spans them if they are not contiguous. Returns nothing and changes
// nothing when there is no such symbol or no size would be left.
struct Narrowed {
  std::string name;  // the name that --dim accepts
  Symbol left;
  bool all;  // every remaining size satisfies `fits`
};
std::optional<Narrowed> Narrow(Node& node, const Dim& dim, const std::function<bool(int64_t)>& fits,
                               const std::string& why);

}  // namespace mlc::onnx
