// lib/verify/floor.h - what fp16 costs at the least: a program in which nothing is rounded but its
// constants, and the budgets that follow from that.
//
//   Program rounded = RoundConstants(source);
//   references = RunSteps(*source.main(), steps, exact);  // Arithmetic::kExact, both
//   Budgets budgets = Fp16Budgets(base, references, RunSteps(*rounded.main(), steps, exact));
//
// The floor of an output is the error (compare.h) that the rounded program has, beside the program
// itself on the same inputs. A package whose weights are fp16 cannot be asked for less; kFloors
// times as much is for its arithmetic.
#pragma once

#include <string_view>
#include <vector>

#include "lib/ir/program.h"
#include "lib/verify/functions.h"

namespace mlc {

// The definition below in one line, for reports and help.
inline constexpr std::string_view kFloorFigure =
    "the error of the source with each float constant rounded to fp16, in exact arithmetic";

// A clone whose float constants are what fp16 makes of them: each element of const operations and
// literals is rounded to the nearest fp16 number and keeps its type; finite ones that fp16 cannot hold
// stay what they are, as do infinities and NaN. Lazily: constants of many elements are rounded when they are
// read. An encoded constant (constexpr operations) is its decoded value, rounded. What MIL has in
// fp32 only (a scale factor) stays. A lone number that would vanish becomes the smallest of fp16,
// 2^-24, as the compiler has it: an epsilon of 0 makes 0 / 0, which is no matter of precision.
Program RoundConstants(const Program& program);

// `base` with the floor of each output and state, by name: the worst of all steps. `references` and
// `rounded` are steps of one function, the program's own and those of RoundConstants'. Steps whose
// reference discriminates nothing have no floor.
Budgets Fp16Budgets(Budgets base, const std::vector<StepResults>& references,
                    const std::vector<StepResults>& rounded);

}  // namespace mlc
