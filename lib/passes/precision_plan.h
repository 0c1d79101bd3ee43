// lib/passes/precision_plan.h - which operations stay fp32 where a program is narrowed to fp16, and
// why; the pass fp16-precision carries it out.
//
// What the user names (PassContext::fp32_ops, fp16_ops) is as he says, but for operations that Core
// ML has in fp32 only. Else these stay fp32:
//   - operations with a constant whose finite values do not fit (65520 and above would become
//     infinity); bounds of clip, maximum, minimum and pad may become infinite;
//   - products with constants that are all below 2^-14, of which fp16 keeps few digits;
//   - operations with a constant that is stored as integers whose scales, or table, fp16 cannot hold;
//   - what needs more digits than fp16 has, for where its numbers come from or what becomes of them
//     (digits.h);
//   - what its row proves to leave fp16, where it is made of one bounded number by one: 70000 times a
//     sigmoid, but not a convolution, whose bound is hardly ever reached;
//   - what measuring accuses (PassContext::measured);
//   - the small last operations before a model output, back to convolutions (results of at most
//     16384 elements, constants of at most 65536), the nearest to it first, up to 5 % of the work and
//     half of the operations: scores near zero and near ties keep their digits, and the output is
//     fp32 anyway (an output in fp16 would not show them: before one, nothing stays fp32 for it);
//   - operations that Core ML has in fp32 only;
//   - weights in other forms (constexpr operations) that only such operations take;
//   - with --precision mixed: reductions, normalisations, softmax, exp, log, pow and roots as well.
#pragma once

#include <string>

#include "lib/passes/pass.h"

namespace mlc {

// Of the operations of a function, of its blocks too, that compute with fp32 numbers: why each stays so;
// empty: it computes in fp16. Casts are none, which follow, nor are loops, branches and lists, whose
// variables, results and elements keep their types.
using PrecisionPlan = PointerMap<Operation, std::string>;

PrecisionPlan PlanPrecision(const Function& function, const PassContext& context);

// Error "bad-name" where one of fp32_ops or fp16_ops is neither an operation of the program nor an
// operator that it has.
void CheckNamedOperations(const Program& program, const PassContext& context);

}  // namespace mlc
