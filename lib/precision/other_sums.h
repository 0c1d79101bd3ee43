// lib/precision/other_sums.h - what sums of products become when they are taken in another order, as
// other kernels, processors and numbers of threads take them.
#pragma once

#include <cstdint>
#include <span>

#include "lib/ir/program.h"

namespace mlc {

// Moves the last digits of an operation's results, drawn from `seed`, where they are such sums: by
// up to 2^-22 of their usual size, rounded as they are; of fp16 numbers that is the neighbour of
// few. Zeros and small whole numbers stay, which are most often exact in any order.
void TakeSumsOtherwise(const Operation& op, std::span<Tensor> results, uint64_t seed);

}  // namespace mlc
