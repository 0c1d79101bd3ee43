// lib/lower/gaussian_elimination.h - determinants and inverses of square matrices, by Gaussian
// elimination with partial pivoting.
//
// x is a float tensor [..., n, n]. Because each step takes several operations, n must be static and
// at most 64: otherwise Error "bad-operand" or "resource-limit".
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

Value* Determinant(Builder& b, Value* x);  // [...]; 0 for a singular matrix
Value* Inverse(Builder& b, Value* x);  // same shape as x; infinities and NaN for a singular matrix

}  // namespace mlc::lower
