// lib/verify/quantisation_ties.h - ties of quantisation: numbers so close to the midpoint between
// two steps that arithmetic precision decides the direction of rounding.
//
//   if (HasSteps(source)) {
//     others = OtherSides(source, steps, options, rmse);
//     ties = TakeTies(values, source results, others, references);
//   }
//
// The source runs a second time, with each tie of the last roundings before the outputs resolved in
// the other direction. If an element of the package equals the result of one run and its reference
// equals the result of the other, the element is a tie, one step apart. All other elements are
// compared with the reference unchanged.
#pragma once

#include <vector>

#include "lib/verify/compare_functions.h"

namespace mlc::verify {

// A number counts as near the midpoint if the allowed RMSE, relative to the range of the rounded
// numbers (compare.h), can move it across; the distance is at most a quarter of a step.
inline constexpr double kWidestTie = 0.25;

// Returns whether an output is the result of a rounding (round or quantize), possibly followed by
// operations that move or scale elements.
bool HasSteps(const Function& function);
// Returns the results of the function with every tie resolved in the other direction.
std::vector<StepResults> OtherSides(const Function& function, const std::vector<StepInputs>& steps,
                                    engine::EngineOptions options, double rmse);
// Replaces each tied reference element by the side that the value took. Returns the number of
// replaced elements for each output of each step. `own` and `other` are the results of the two
// runs.
std::vector<std::vector<int64_t>> TakeTies(const std::vector<StepResults>& values,
                                           const std::vector<StepResults>& own,
                                           const std::vector<StepResults>& other,
                                           std::vector<StepResults>& references);

}  // namespace mlc::verify
