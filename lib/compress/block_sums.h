// lib/compress/block_sums.h - sums over the numbers of blocks, in vector lanes.
//
// Sums do not depend on the processor: lanes are added in a fixed order, and in parts, because sums
// of floats lose precision. Numbers must be finite, unless stated otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace mlc::compress {

inline constexpr size_t kLanes = 16;

// The scale and the zero point of each block: an integer q represents scale * (q - zero).
struct LaneGrids {
  alignas(64) std::array<float, kLanes> scale, zero;
};

// Up to kLanes blocks of equal size, one in each lane.
class BlockLanes {
 public:
  // Blocks are contiguous, and so are their weights; no weights: 1.
  BlockLanes(std::span<const float> numbers, std::span<const float> weights, size_t block);

  size_t count() const { return count_; }  // blocks
  // The least number of each block, or 0, and the greatest.
  void Extremes(std::array<float, kLanes>& least, std::array<float, kLanes>& greatest) const;
  // Computes the sum of weighted squared errors of each block on each grid.
  void Errors(std::span<const LaneGrids> grids, float low, float high,
              std::array<double, kLanes>* sums) const;
  // The scales that minimise these sums for the integers that `grids` gives; 0 if all are `zero`.
  std::array<float, kLanes> FittedScales(const LaneGrids& grids, float low, float high) const;

 private:
  size_t count_;
  std::vector<float> numbers_, weights_;  // by number and lane; unused lanes contain 0
};

// The sum of squares, each with its weight.
double SumOfSquares(std::span<const float> numbers, std::span<const float> weights);
bool AllFinite(std::span<const float> numbers);

// Writes the integers low <= q <= high that stand for numbers, in bytes.
void ToBytes(std::span<const float> numbers, float scale, float zero, float low, float high,
             std::byte* out);

// Writes how many of up to kMostCounted middles each number exceeds.
inline constexpr size_t kMostCounted = 15;
void CountBelow(std::span<const float> middles, std::span<const float> numbers, std::byte* out);

}  // namespace mlc::compress
