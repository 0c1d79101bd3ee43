// lib/lower/scatter.h - replaces or combines elements at indices.
//
// Indices may be negative. Errors are those of MIL's operators.
#pragma once

#include <string>

#include "lib/ir/builder.h"

namespace mlc::lower {

struct Scattered {
  Value* data;
  Value* indices;
  Value* updates;    // dtype of data
  std::string mode;  // a mode of MIL: "update", "add", "mul", "max", "min"
};

// indices and updates have the rank of data and at most its size in every dimension except `axis`.
// For axis 1, element [i, j, k] of updates is written to [i, indices[i, j, k], k]. Error
// "bad-operand" for other ranks.
Value* ScatterAlongAxis(Builder& b, Scattered s, int axis);
// The last dimension of indices holds index vectors into the first dimensions of data.
Value* ScatterVectors(Builder& b, Scattered s);

}  // namespace mlc::lower
