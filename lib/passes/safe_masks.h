// lib/passes/safe_masks.h - what of a program masks attention, for who compares it before and after the pass safe-masks.
#pragma once

#include <unordered_set>

#include "lib/ir/program.h"

namespace mlc {

// The operations of the block, without those of nested ones, whose results reach nothing but softmax, by sums, choices,
// products and moves: there a mask may be bounded.
std::unordered_set<const Operation*> EndInSoftmax(const Block& block);

// Returns true if what the operation reads reaches nothing but softmax; `ending` is EndInSoftmax of its block.
bool EndsInSoftmax(const Operation& reader, const std::unordered_set<const Operation*>& ending);

// Whether an element masks both as the source has it and as a package does, with its score: softmax makes 0 of both.
bool MasksBoth(double source, double package);

}  // namespace mlc
