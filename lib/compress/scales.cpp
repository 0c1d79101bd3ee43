#include "lib/compress/scales.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "lib/compress/block_sums.h"

namespace mlc::compress {

namespace {

using LaneFloats = std::array<float, kLanes>;

// Rounds scales, and turns those that are 0 into NaN, whose errors are NaN.
void RoundScales(Stored stored, LaneFloats& scales) {
  for (float& scale : scales) {
    scale = RoundedScale(stored, scale);
    if (scale == 0) scale = std::numeric_limits<float>::quiet_NaN();
  }
}

// Three for each of the shares below.
constexpr size_t kMostScales = 42;

// The best of the scales that were tried for each of several blocks.
class Search {
 public:
  Search(const BlockLanes& blocks, const Integers& integers, Stored stored)
      : blocks_(blocks), low_(integers.low()), high_(integers.high()), stored_(stored) {
    errors_.fill(std::numeric_limits<double>::infinity());
    best_.scale.fill(1);
    best_.zero.fill(0);
  }

  // Remembers scales, one for each block, that will be tried with others.
  void Propose(const LaneFloats& scales, const LaneFloats& zeros) {
    LaneGrids& grids = proposed_.at(count_++);
    grids = {scales, zeros};
    RoundScales(stored_, grids.scale);
  }
  // Returns whether one of the proposed scales is better than the best one, by block.
  std::array<bool, kLanes> TryProposed() {
    std::array<std::array<double, kLanes>, kMostScales> errors;
    const size_t count = std::exchange(count_, 0);
    blocks_.Errors(std::span(proposed_).first(count), low_, high_, errors.data());
    std::array<bool, kLanes> better = {};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      size_t best = count;
      double least = errors_[lane];
      for (size_t i = 0; i < count; ++i) {
        best = errors[i][lane] < least ? i : best;
        least = errors[i][lane] < least ? errors[i][lane] : least;
      }
      if (best == count) continue;
      errors_[lane] = least;
      best_.scale[lane] = proposed_[best].scale[lane];
      best_.zero[lane] = proposed_[best].zero[lane];
      better[lane] = true;
    }
    return better;
  }
  void Refit(int rounds) {
    std::array<bool, kLanes> better;
    better.fill(true);
    for (int i = 0; i < rounds; ++i) {
      LaneFloats fitted = blocks_.FittedScales(best_, low_, high_);
      for (size_t lane = 0; lane < kLanes; ++lane)
        if (!better[lane]) fitted[lane] = 0;
      Propose(fitted, best_.zero);
      better = TryProposed();
      if (std::ranges::none_of(better, std::identity())) break;
    }
  }
  Scale best(size_t lane) const { return {best_.scale[lane], best_.zero[lane], errors_[lane]}; }

 private:
  const BlockLanes& blocks_;
  const float low_, high_;
  const Stored stored_;
  std::array<LaneGrids, kMostScales> proposed_;
  size_t count_ = 0;
  LaneGrids best_;
  std::array<double, kLanes> errors_;
};

// Shares of the range of a block that the integers cover. Longer blocks have longer tails.
constexpr float kFewShares[] = {1, 1.08F, 1.143F, 0.93F, 0.86F, 0.79F},
                kManyShares[] = {1,     1.08F, 1.143F, 0.93F, 0.86F, 0.79F, 0.72F,
                                 0.65F, 0.59F, 0.53F,  0.47F, 0.42F, 0.37F, 0.32F},
                kNearShares[] = {1, 1.008F, 0.97F, 0.9F};
constexpr size_t kLong = 64;

std::span<const float> SharesFor(const Integers& integers, size_t size) {
  if (integers.bits == 8) return kNearShares;
  return size > kLong ? std::span<const float>(kManyShares) : kFewShares;
}

}  // namespace

float Integers::low() const {
  if (asymmetric) return 0;
  return bits == 8 ? -127 : -8;
}
float Integers::high() const {
  if (asymmetric) return bits == 8 ? 255 : 15;
  return bits == 8 ? 127 : 7;
}

void BestScales(std::span<const float> numbers, std::span<const float> weights, size_t block,
                const Integers& integers, Stored stored, std::span<Scale> best) {
  for (size_t first = 0; first < best.size(); first += kLanes) {
    const size_t count = std::min(kLanes, best.size() - first);
    auto part = [&](std::span<const float> from) {
      return from.empty() ? from : from.subspan(first * block, count * block);
    };
    const BlockLanes blocks(part(numbers), part(weights), block);
    LaneFloats least, greatest, scales, zeros = {};
    blocks.Extremes(least, greatest);
    Search search(blocks, integers, stored);
    for (const float share : SharesFor(integers, block)) {
      // Shares of the range below and above 0.
      auto propose = [&](float below, float above) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const float low = least[lane] * below, high = greatest[lane] * above;
          if (integers.asymmetric) {
            scales[lane] = (high - low) / integers.high();
          } else {
            const float extreme = -low > high ? low : high;
            // The extreme is at -127, or at 127 if it is positive; that of int4 at -8.
            scales[lane] = integers.bits == 8 ? std::fabs(extreme) / 127 : extreme / integers.low();
          }
        }
        if (integers.asymmetric) {
          RoundScales(stored, scales);
          for (size_t lane = 0; lane < kLanes; ++lane) {
            const float zero = std::nearbyint(-least[lane] * below / scales[lane]);
            zeros[lane] = zero > 0 ? std::min(zero, integers.high()) : 0;  // 0 for NaN
          }
        }
        search.Propose(scales, zeros);
      };
      propose(share, share);
      if (!integers.asymmetric || share == 1) continue;
      propose(1, share);
      propose(share, 1);
    }
    search.TryProposed();
    search.Refit(3);
    for (size_t lane = 0; lane < count; ++lane) {
      best[first + lane] = search.best(lane);
      if (least[lane] == 0 && greatest[lane] == 0)
        best[first + lane] = {
            stored == Stored::kFp32 ? std::numeric_limits<float>::min() : kLeastNormalHalf, 0};
    }
  }
}

void ToIntegers(std::span<const float> numbers, const Scale& scale, const Integers& integers,
                std::byte* out) {
  ToBytes(numbers, scale.scale, scale.zero, integers.low(), integers.high(), out);
}

double ErrorOf(std::span<const float> numbers, std::span<const float> weights, const Scale& scale,
               const Integers& integers) {
  LaneGrids grids;
  grids.scale.fill(scale.scale);
  grids.zero.fill(scale.zero);
  std::array<double, kLanes> sums;
  BlockLanes(numbers, weights, numbers.size())
      .Errors({&grids, 1}, integers.low(), integers.high(), &sums);
  return sums[0];
}

}  // namespace mlc::compress
