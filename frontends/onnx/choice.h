// frontends/onnx/choice.h - branches between which the run time need not choose.
#pragma once

#include <optional>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// A condition that asks whether a flexible dimension has one size: the dimension's symbol is
// narrowed to the sizes with which it has, a decision says so, and the result is what the condition
// is then. Nothing for other conditions, and where no size would do or not all in a row.
std::optional<bool> AssumeSize(Node& node, const Value* condition);

// x where `keep`, a scalar, is true; else nothing of dimension `axis`.
Value* AllOrNone(Builder& builder, Value* x, int axis, Value* keep);

}  // namespace mlc::onnx
