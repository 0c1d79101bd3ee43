// lib/lower/indices.h - indices that count from the front.
//
// Sources let indices count from the end where they are negative; from iOS17 on MIL leaves such
// indices undefined. An index below -size stays negative, for the run time to refuse.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

// Indices into dimension `axis` of x. Folded when constant; as they are when none can be negative.
Value* FromFront(Builder& b, Value* indices, Value* x, int axis);
// Index vectors in the last dimension of `indices`, of the dimensions of x behind the first
// `batch`. Error "bad-operand" when their length is not known or more than x has dimensions.
Value* VectorsFromFront(Builder& b, Value* indices, Value* x, int batch);

}  // namespace mlc
