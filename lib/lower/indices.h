// lib/lower/indices.h - indices that count from the end.
//
// Sources allow negative indices, which count from the end. So does MIL before iOS17; since then
// they are out of range.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

// Marks the gather or scatter that computes `result` as one whose negative indices count from the
// end: the pass newer-forms normalises them if the target does not support them. Returns `result`.
Value* CountingFromEnd(Value* result);

// Normalises indices into dimension `axis` of x; an index below -size stays negative. Folded if
// constant; unchanged if no index can be negative.
Value* FromFront(Builder& b, Value* indices, Value* x, int axis);
// Normalises index vectors, stored in the last dimension of `indices`, into the dimensions of x
// after the first `batch`. Error "bad-operand" if the length of the vectors is unknown or exceeds
// the rank of x.
Value* VectorsFromFront(Builder& b, Value* indices, Value* x, int batch);

}  // namespace mlc::lower
