// lib/lower/einsum.h - Einstein summation over any number of operands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::lower {

// Requires dimension `i` of x to equal dimension `j` of y, and may replace a value by a checked
// one. `what` names the sizes.
using SameSize = std::function<void(Value*& x, int i, Value*& y, int j, const std::string& what)>;

// Sums products by an equation as in NumPy, e.g. "bhid,bhjd->bhij", "...ij,jk" or "ii->i": labels
// are letters, and a size of 1 broadcasts. `equal` is called for the repeated labels of a diagonal;
// null: no check. Error "bad-attribute" for an equation that does not match the operands,
// "bad-operand" for sizes that contradict each other, "unsupported-attribute" for a diagonal of
// more than 4096 elements.
Value* Einsum(Builder& b, std::string equation, const std::vector<Value*>& operands,
              const SameSize& equal = {});

}  // namespace mlc::lower
