// lib/passes/safe_masks.h - finds attention masks, for code that compares a program before and
// after safe-masks.
#pragma once

#include <unordered_set>

#include "lib/ir/program.h"

namespace mlc::passes {

// The operations of the block (without nested blocks) whose results reach only softmax, by sums,
// selects, products and data movement: a mask there may be bounded.
std::unordered_set<const Operation*> EndInSoftmax(const Block& block);

// Returns whether the operands of `reader` reach only softmax; `ending` is EndInSoftmax of its
// block.
bool EndsInSoftmax(const Operation& reader, const std::unordered_set<const Operation*>& ending);

// Returns whether both elements mask a score, in the source and in the package: softmax makes 0 of
// either.
bool MasksBoth(double source, double package);

}  // namespace mlc::passes
