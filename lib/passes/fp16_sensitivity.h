// lib/passes/fp16_sensitivity.h - finds the operations that need more precision than fp16 has,
// because of where their operands come from or how their results are used, and gives the reason for
// each.
//
// These are rules on data flow; the role of each operator stands in its row (Fp16). They apply
// within blocks and across block boundaries:
//   - sin, cos, tan and the coordinates of resample and crop_resize, with the arithmetic that
//     computes them: fp16 represents an angle of 100 with an error of up to 0.03. Also acos, asin
//     and atanh, whose slope is unbounded near 1;
//   - log, with the operations that compute its operand, convolutions included: fp16 has no
//     positive number below 6e-8, where logarithms still differ widely. If those operations begin at
//     the inputs and include a product with weights, they are a front end that computes features
//     such as a log-mel spectrogram: then also the operations after the logarithm, up to the next
//     product with weights, so that features have the precision that the model was trained with;
//   - boxes and scores of non_maximum_suppression, with the arithmetic that computes them: the
//     selection depends on the low-order bits, and classes are often separated by large offsets;
//   - discontinuous operations: floor, ceil, round, sign, mod, floor_div, casts to integers, the
//     remainder after rounding, and comparisons of scaled-up numbers; with the elementwise
//     operations and data movement back to the nearest product, reduction or input, which is
//     included. In fp16 they would select other rows of a table of 4095, and an infinity would
//     become an integer;
//   - selections by values that do not depend on any product, from the inputs on: comparisons, arg
//     max, top k and discontinuous operations. After a product fp16 has lost these digits already.
//     Quantisation is excluded: a number that is converted back to float may differ by one step;
//   - elementwise updates of loop-carried values, since accumulation loses digits; functions such
//     as exp that compute the factors of such a value, with the arithmetic before them; and writes
//     into a loop-carried variable, which would be cast as a whole in each iteration;
//   - arithmetic on converted integers that ends in integers, comparisons, rounding or differences
//     of such numbers: fp16 represents all integers up to 2048 only;
//   - expressions that cancel or overflow because of their form (fp16_cancellation.h): a mean of squares
//     minus the square of the mean; values that do not depend on any product and from which a large
//     mean is subtracted, with the elementwise operations and data movement before them; sums of
//     squares and of many magnitudes; divisions by a product of norms;
//   - products of integral values, with the operations that compute them, as integer convolutions
//     are written: their sums are exact in fp32.
#pragma once

#include <unordered_map>

#include "lib/ir/program.h"
#include "lib/passes/def_use_across_blocks.h"
#include "lib/passes/fp32_reason.h"

namespace mlc::passes {

std::unordered_map<const Operation*, Fp32Decision> FindFp16Sensitive(const Function& function,
                                                                     const DefUseGraph& flow);

inline bool IsFp32(const Type& type) { return type.is_tensor() && type.dtype == DType::kFp32; }
// Returns whether any operand or result is fp32.
bool HasFp32(const Operation& op);
inline bool Is(const Operation& op, Fp16::Kind kind) { return op.def->fp16.kind & kind; }
// Returns whether the value is a constant, dense or encoded.
bool IsWeight(const Value* value);
// If the value is the result of an elementwise operation or data movement with one operand that is
// not constant, returns the operation and sets `from` to that operand; otherwise returns null.
const Operation* MadeOfOne(const Value& value, const Value*& from);

}  // namespace mlc::passes
