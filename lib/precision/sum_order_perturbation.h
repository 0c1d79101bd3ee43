// lib/precision/sum_order_perturbation.h - simulates sums of products in other summation orders,
// as in other kernels, on other processors or with other numbers of threads.
#pragma once

#include <cstdint>
#include <span>

#include "lib/ir/program.h"

namespace mlc::precision {

// Perturbs the results of operations that sum products, with noise drawn from `seed`: up to 2^-22
// of their RMS, then rounded to their type; in fp16 few elements change by one step. Zeros and
// small whole numbers stay, because they are usually exact in any order.
void PerturbSumOrder(const Operation& op, std::span<Tensor> results, uint64_t seed);

}  // namespace mlc::precision
