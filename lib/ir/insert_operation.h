// lib/ir/insert_operation.h - adds an operation to a block exactly as it is, without the conversions
// and the folding of the Builder.
#pragma once

#include <memory>

#include "lib/ir/program.h"

namespace mlc {

// Inserts an operation whose operands are set and for which infer has succeeded, and creates its
// results from the inferred types. Their names derive from the operation's. before == null appends.
Operation* InsertOperation(Block& block, std::unique_ptr<Operation> op, InferContext& inferred,
                           Operation* before = nullptr);

}  // namespace mlc
