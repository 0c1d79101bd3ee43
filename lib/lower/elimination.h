// lib/lower/elimination.h - determinants and inverses of square matrices, by elimination with the
// greatest element of each column as pivot.
//
// x is [..., n, n] of floats, n known and at most 64, since every step is some operations: Error
// "bad-operand" or "resource-limit" else.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

Value* Determinant(Builder& b, Value* x);  // [...]; 0 of a singular matrix
Value* Inverse(Builder& b, Value* x);      // as x; infinities and NaN of a singular matrix

}  // namespace mlc
