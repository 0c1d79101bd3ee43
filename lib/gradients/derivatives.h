// lib/gradients/derivatives.h - what the gradient of a result says about the operands.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::gradients {

// An operation whose derivative is built, and the gradients of its results.
struct Chain {
  Builder& b;
  const Operation& op;
  // The gradients of the results, of their shapes; null: the loss does not depend on the result.
  std::vector<Value*> of_results;
  // Returns whether the gradient of a value is needed.
  std::function<bool(const Value*)> needs;
  // Adds to the gradient of a value. Dimensions that the operation broadcasts are summed.
  std::function<void(Value* value, Value* gradient)> add;

  Value* gradient() const { return of_results[0]; }
  Value* operand(std::string_view param) const { return op.value(param); }
};

// Builds the gradients of the operands that need one. All sizes are fixed, and all floats fp32.
using Derivative = void (*)(const Chain& chain);

// Null if the operator has no derivative here. Values that do not depend on a weight need none.
Derivative DerivativeOf(const Operation& op);

}  // namespace mlc::gradients
