// lib/analysis/wants.h - what the operations of a function ask of the values that they read.
//
// The rows of the operators say what each asks (lib/ops/want.h); this goes through a function with them.
#pragma once

#include <unordered_map>

#include "lib/analysis/cost.h"
#include "lib/ops/want.h"

namespace mlc {

// Of every value that something asks anything of, at these sizes of the open dimensions. Bounds are
// followed back through moves, casts, and arithmetic with what is known.
std::unordered_map<const Value*, Want> FindWants(const Function& function,
                                                 const SymbolSizes& sizes);

}  // namespace mlc
