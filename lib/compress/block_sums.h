// lib/compress/block_sums.h - sums over the numbers of a block.
//
// Numbers must be finite, unless stated otherwise.
#pragma once

#include <cstddef>
#include <span>

namespace mlc::compress {

// The sum of squares, each with its weight. No weights: 1.
double SumOfSquares(std::span<const float> numbers, std::span<const float> weights);
bool AllFinite(std::span<const float> numbers);

// Writes how many of up to kMostCounted middles each number exceeds.
inline constexpr size_t kMostCounted = 15;
void CountBelow(std::span<const float> middles, std::span<const float> numbers, std::byte* out);

}  // namespace mlc::compress
