// lib/engine/fusion.h - which operations of a block one kernel can compute.
#pragma once

#include <vector>

#include "lib/engine/elementwise.h"
#include "lib/ir/program.h"

namespace mlc {

// An operation that has kernels for chains, and the elementwise operations after it, in order; only
// the last one's result is used by others. All their shapes are the same, and static.
struct Fusion {
  std::vector<const Operation*> operations;
  Chain chain;
};

// An operation is part of one at most.
std::vector<Fusion> FindFusions(const Block& block);

}  // namespace mlc
