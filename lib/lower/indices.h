// lib/lower/indices.h - normalises indices to count from the front.
//
// Sources allow negative indices, which count from the end; since iOS17, MIL leaves them undefined.
// An index below -size stays negative, so that the run time rejects it.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

// Normalises indices into dimension `axis` of x. Folded if constant; unchanged if no index can be
// negative.
Value* FromFront(Builder& b, Value* indices, Value* x, int axis);
// Normalises index vectors, stored in the last dimension of `indices`, into the dimensions of x
// after the first `batch`. Error "bad-operand" if the length of the vectors is unknown or exceeds
// the rank of x.
Value* VectorsFromFront(Builder& b, Value* indices, Value* x, int batch);

}  // namespace mlc::lower
