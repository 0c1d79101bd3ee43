// lib/verify/ties.h - ties of quantisation: numbers so close to the middle of two steps that the precision
// decides to which of them they are rounded.
//
//   if (HasSteps(source)) {
//     others = RunSteps(source, steps, other side of ties);  // OtherSides
//     ties = TakeTies(values, source results, others, references);
//   }
//
// The source runs again, and each tie of the roundings that make its outputs goes to the other side. An
// element that is what the one run computes where its reference is what the other does is one step apart:
// a tie. All else is compared with the reference as it is.
#pragma once

#include <vector>

#include "lib/verify/functions.h"

namespace mlc {

// Near the middle is what the allowed RMSE moves there, of the size of the numbers that are rounded
// (compare.h), and never more than a quarter of a step.
inline constexpr double kWidestTie = 0.25;

// Whether an output is made of a rounding: round or quantize, and behind it what moves or scales elements.
bool HasSteps(const Function& function);
// What the function computes where every tie goes to the other side.
std::vector<StepResults> OtherSides(const Function& function, const std::vector<StepInputs>& steps,
                                    EngineOptions options, double rmse);
// Puts the side that the value took in the place of a reference that took the other; how many elements of
// each output of each step that are. `own` and `other`: the two runs.
std::vector<std::vector<int64_t>> TakeTies(const std::vector<StepResults>& values,
                                           const std::vector<StepResults>& own,
                                           const std::vector<StepResults>& other,
                                           std::vector<StepResults>& references);

}  // namespace mlc
