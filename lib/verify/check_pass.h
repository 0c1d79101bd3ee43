// lib/verify/check_pass.h - checks that a pass preserves the results of a program.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc::verify {

// Runs every function of both programs on the same generated inputs, with open dimensions at their
// lower bounds; functions with states run three steps. Throws Error "check-failed" at the first
// output or state that differs by more than the budget; the message names `pass`, the function and
// the value. The budget is fp32's, or fp16's where `after` computes in fp16 and `before` does not.
// Functions with random results are not compared and pass.
void CheckSame(const Program& before, const Program& after, uint64_t seed, std::string_view pass);

}  // namespace mlc::verify
