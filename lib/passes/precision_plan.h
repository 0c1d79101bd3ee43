// lib/passes/precision_plan.h - which operations stay fp32 where a program is narrowed to fp16, and
// why; the pass fp16-precision carries it out.
//
// What the user names (PassContext::fp32_ops, fp16_ops) is as he says, but for operations that Core
// ML has in fp32 only. Else these stay fp32:
//   - operations with a constant whose finite values do not fit (65520 and above would become
//     infinity); bounds of clip, maximum, minimum and pad may become infinite;
//   - operations with a constant that is stored as integers whose scales, or table, fp16 cannot hold;
//   - what needs more digits than fp16 has, for where its numbers come from or what becomes of them
//     (digits.h); what is estimated to be rounded too much only where that is 5 % of the work at most;
//   - products with constants that are all below 2^-14, of which fp16 keeps few digits, likewise;
//   - what its row proves to leave fp16, where it is made of one bounded number by one: 70000 times a
//     sigmoid, but not a convolution, whose bound is hardly ever reached;
//   - what measuring accuses (PassContext::measured);
//   - operations that Core ML has in fp32 only;
//   - weights in other forms (constexpr operations) that only such operations take;
//   - with --precision mixed: reductions, normalisations, softmax, exp, log, pow and roots as well.
#pragma once

#include "lib/passes/pass.h"

namespace mlc {

// Of the operations of a function, of its blocks too, that compute with fp32 numbers: why each stays
// so, if it does. Casts are none, which follow, nor are loops, branches and lists, whose variables,
// results and elements keep their types.
using PrecisionPlan = PointerMap<Operation, WhyFp32>;

PrecisionPlan PlanPrecision(const Function& function, const PassContext& context);

// Error "bad-name" where one of fp32_ops or fp16_ops is neither an operation of the program nor an
// operator that it has.
void CheckNamedOperations(const Program& program, const PassContext& context);

}  // namespace mlc
