// lib/verify/fp16_floor.h - the unavoidable cost of fp16: a program in which only the
// constants are rounded, and the budgets that follow from it.
//
//   Program rounded = RoundConstants(source);
//   references = RunSteps(*source.main(), steps, exact);  // Arithmetic::kExact for both
//   Budgets budgets = Fp16Budgets(base, references, RunSteps(*rounded.main(), steps, exact));
//
// The floor of an output is the error (compare.h) of the rounded program against the original
// program on the same inputs. No package with fp16 weights can do better; the factor kFloors leaves
// room for the error of its arithmetic.
#pragma once

#include <string_view>
#include <vector>

#include "lib/ir/program.h"
#include "lib/verify/compare_functions.h"

namespace mlc::verify {

// The definition above in one line, for reports and help texts.
inline constexpr std::string_view kFloorDescription =
    "the error of the source with each float constant rounded to fp16, in exact arithmetic";

// Returns a clone in which each element of float constants and literals is rounded to the nearest
// fp16 number and keeps its type. NaN, infinities and finite numbers outside the range of fp16 stay
// unchanged. Large constants are rounded lazily, when they are read. An encoded constant (constexpr
// operations) becomes its decoded value, rounded. Operands that MIL only allows in fp32, such as
// scale factors, are not rounded. A scalar that would underflow to zero becomes 2^-24, the smallest
// fp16 number, as in the compiler: an epsilon of 0 could give 0 / 0, which is not a question of
// precision.
Program RoundConstants(const Program& program);

// Returns `base` with the floor of each output and state, by name: the worst over all steps.
// `references` and `rounded` are the steps of one function in the original program and in the
// result of RoundConstants. Steps whose reference does not discriminate have no floor.
Budgets Fp16Budgets(Budgets base, const std::vector<StepResults>& references,
                    const std::vector<StepResults>& rounded);

}  // namespace mlc::verify
