// lib/passes/digits.h - which operations need more digits than fp16 has, for where their numbers come
// from or what becomes of them, and why.
//
// These are rules on how numbers go from operation to operation; what an operator has to do with them
// stands in its row (Fp16). They hold within blocks and across their borders:
//   - sin, cos, tan and the coordinates of resample and crop_resize, with the arithmetic that makes
//     them: fp16 keeps an angle of 100 to within 0.03 only; acos, asin and atanh, which are steep
//     without bound near 1;
//   - log with what makes its operand, convolutions included: fp16 has nothing below 6e-8, where a
//     logarithm still differs by much;
//   - boxes and scores of non_maximum_suppression, with the arithmetic that makes them: which boxes
//     are kept hangs on their last digits, and classes are often told apart by great offsets;
//   - what decides a step: floor, ceil, round, sign, mod, floor_div, casts to integers, what is left
//     of a number beside its steps, comparisons of numbers that are scaled up; with elementwise
//     operations and moves back to, and including, the nearest product, reduction or input. Fp16
//     would choose other rows of a table of 4095, and infinity would become an integer;
//   - what chooses by numbers that no product has made, from inputs on: comparisons, arg max, top k
//     and steps. Behind a product fp16 has lost digits anyway. Quantisation is none of these: a
//     number that becomes a float again may be one step apart;
//   - what a loop makes, element by element, of a number that it carries: a sum keeps its digits; functions
//     like exp that make the factors of such a number, with the arithmetic before them; and what writes
//     into a variable of a loop, which would be cast as a whole in each step;
//   - arithmetic on converted integers that ends in integers, comparisons, rounding or differences
//     of such numbers: fp16 counts to 2048;
//   - what cancels or overflows by how it is written (delicate.h): a mean of squares minus the square
//     of the mean and numbers that no product has made from which a large mean is subtracted, with
//     elementwise operations and moves before; sums of squares and of many magnitudes; what is
//     divided by a product of norms;
//   - products of whole numbers with what makes them, as integer convolutions are written: their
//     sums are exact in fp32.
#pragma once

#include <unordered_map>

#include "lib/ir/program.h"
#include "lib/passes/flow.h"
#include "lib/passes/fp32_reason.h"

namespace mlc {

std::unordered_map<const Operation*, WhyFp32> FindNeededDigits(const Function& function,
                                                               const Flow& flow);

inline bool IsFp32(const Type& type) { return type.is_tensor() && type.dtype == DType::kFp32; }
// Whether an operand or a result is fp32.
bool HasFp32(const Operation& op);
inline bool Is(const Operation& op, Fp16::Kind kind) { return op.def->fp16.kind & kind; }
// A constant, also in another form than dense.
bool IsWeight(const Value* value);
// The operation that makes each element of the value from one of `from` and constants; null for others.
const Operation* MadeOfOne(const Value& value, const Value*& from);

}  // namespace mlc
