// lib/engine/fusion.h - finds operations of a block that one kernel can compute together.
#pragma once

#include <vector>

#include "lib/engine/elementwise.h"
#include "lib/ir/program.h"

namespace mlc::engine {

// An operation that has chain kernels, and the elementwise operations after it, in order. Only the
// result of the last one has other users. All have the same static shape.
struct Fusion {
  std::vector<const Operation*> operations;
  Chain chain;
};

// Returns the fusions of the block; each operation is part of at most one.
std::vector<Fusion> FindFusions(const Block& block);

}  // namespace mlc::engine
