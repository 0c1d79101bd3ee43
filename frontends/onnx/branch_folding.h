// frontends/onnx/branch_folding.h - conditionals that can be resolved at compile time.
#pragma once

#include <optional>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Handles a condition that compares a flexible dimension with one size. Narrows the dimension's
// symbol to the sizes for which the comparison has one known result, records the decision, and
// returns that result. Returns nothing for other conditions, and when the remaining sizes are empty
// or not contiguous.
std::optional<bool> AssumeSize(Node& node, const Value* condition);

// Returns x if the scalar `keep` is true, else x with zero elements along dimension `axis`.
Value* AllOrNone(Builder& builder, Value* x, int axis, Value* keep);

}  // namespace mlc::onnx
