// lib/verify/check_same.h - whether a pass kept what a program computes.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

// Runs every function of both programs on the same made-up inputs (open dimensions at their lower
// bounds), three steps where there are states, and throws Error "check-failed" that names `pass`,
// the function and the first output or state that differs: by more than the fp32 budget, or fp16's
// where `after` computes in fp16 and `before` does not. A function whose results are random is not
// comparable and passes.
void CheckSame(const Program& before, const Program& after, uint64_t seed, std::string_view pass);

}  // namespace mlc
