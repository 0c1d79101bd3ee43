// lib/analysis/constraint_propagation.h - the requirements of a function's operations on the values
// that they read.
//
// The rows of the operators define the requirements (lib/ops/operand_constraint.h); this file
// propagates them through a function.
#pragma once

#include <unordered_map>

#include "lib/analysis/cost.h"
#include "lib/ops/operand_constraint.h"

namespace mlc::analysis {

// Returns the requirements on each value that has any, at these sizes of the dynamic dimensions.
// Bounds are propagated backwards through data movement, casts and arithmetic with known operands.
std::unordered_map<const Value*, OperandConstraint> PropagateConstraints(const Function& function,
                                                                         const SymbolSizes& sizes);

}  // namespace mlc::analysis
