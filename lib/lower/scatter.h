// lib/lower/scatter.h - elements replaced or combined at indices.
//
// Indices may count from the end. Errors are those of MIL's operators.
#pragma once

#include <string>

#include "lib/ir/builder.h"

namespace mlc {

struct Scattered {
  Value* data;
  Value* indices;
  Value* updates;    // of data's type
  std::string mode;  // as MIL has it: "update", "add", "mul", "max", "min"
};

// indices and updates have data's rank, and at most its sizes beside `axis`: element [i, j, k] of
// updates goes to [i, indices[i, j, k], k] where axis is 1. Error "bad-operand" for other ranks.
Value* ScatterAlongAxis(Builder& b, Scattered s, int axis);
// The last dimension of indices holds index vectors of the first dimensions of data.
Value* ScatterVectors(Builder& b, Scattered s);

}  // namespace mlc
