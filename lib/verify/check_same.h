// lib/verify/check_same.h - whether a pass kept what a program computes.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

// Runs both programs on the same random inputs (symbols at their lower bounds) and throws Error
// "check-failed" that names `pass` and the first output that differs: by more than the fp32 budget,
// or fp16's where `after` computes in fp16 and `before` does not. Programs whose results are random
// or depend on state are not comparable and pass.
void CheckSame(const Program& before, const Program& after, uint64_t seed, std::string_view pass);

}  // namespace mlc
