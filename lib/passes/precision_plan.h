// lib/passes/precision_plan.h - decides which operations stay in fp32 when a program is narrowed to
// fp16, and why. The pass fp16-precision applies the plan.
//
// The user's choices (PassContext::fp32_ops, fp16_ops) take precedence, except for operators that
// Core ML supports in fp32 only. Otherwise these stay in fp32:
//   - operations with a constant whose finite values exceed the range of fp16 (65520 and above
//     would become infinite); the bounds of clip, maximum, minimum and pad may become infinite;
//   - operations with a constant stored as integers whose scales or table fp16 cannot represent;
//   - operations that need more precision than fp16 has, because of their operands or users
//     (fp16_sensitivity.h); those with an estimated rounding error only if they amount to at most 5 % of the
//     work;
//   - products with constants that are all below 2^-14, where fp16 has few digits; likewise only up
//     to 5 % of the work;
//   - operations whose rows prove that the result exceeds the range of fp16, if each element is
//     computed from one bounded element: 70000 times a sigmoid, but not a convolution, which rarely
//     reaches its bound;
//   - operations that measuring selects (PassContext::measured);
//   - operators that Core ML supports in fp32 only;
//   - encoded weights (constexpr operations) with only such users;
//   - with --precision mixed: also reductions, normalisations, softmax, exp, log, pow and roots.
#pragma once

#include "lib/passes/pass.h"

namespace mlc::passes {

// Maps each operation that computes with fp32 numbers, in nested blocks too, to the reason why it
// stays in fp32, if it does. Casts are not included, since they follow their users, nor are loops,
// branches and lists, whose variables, results and elements keep their types.
using PrecisionPlan = PointerMap<Operation, Fp32Decision>;

PrecisionPlan PlanPrecision(const Function& function, const PassContext& context);

// Throws Error "bad-name" if one of fp32_ops or fp16_ops is neither an operation of the program nor
// an operator that it uses.
void CheckNamedOperations(const Program& program, const PassContext& context);

}  // namespace mlc::passes
