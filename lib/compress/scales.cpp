#include "lib/compress/scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/compress/lanes.h"
#include "lib/ir/transpose.h"

namespace mlc::compress {

namespace {

// Shares of the range of a block that the integers cover. Longer blocks have longer tails.
constexpr float kFewShares[] = {1, 1.07F, 1.143F, 0.92F, 0.85F},
                kManyShares[] = {1,     1.08F, 1.143F, 0.93F, 0.86F, 0.79F, 0.72F,
                                 0.65F, 0.59F, 0.53F,  0.47F, 0.42F, 0.37F, 0.32F},
                kNearShares[] = {1, 1.008F, 0.97F, 0.9F};
constexpr size_t kLong = 64;

std::span<const float> SharesFor(const Integers& integers, size_t size) {
  if (integers.bits == 8) return kNearShares;
  return size > kLong ? std::span<const float>(kManyShares) : kFewShares;
}

// The search for the scales of kLanes blocks of equal size, whose numbers are stored by number and
// lane.
template <bool kWeighted>
struct Search {
  const float *numbers, *weights;
  size_t count;  // of a block
  Integers integers;
  Stored stored;
  std::span<Scale> best;  // at most one for each lane

  // The best scales that were tried, and their errors in squares of the greatest number.
  struct Best {
    Floats scale, zero, error, inverse_greatest;
  };

  // Rounds a scale for each lane, remembers those that are better than the best ones, and replaces
  // `scale` by the scale that minimises the error of the integers that it gives.
  [[gnu::always_inline]] void Try(Floats& scale, const Floats& zero, Best& found) const {
    RoundScale<Floats, Bits>(stored, scale);
    const Floats size = scale < 0 ? -scale : scale;
    scale = size >= Floats{} + std::numeric_limits<float>::min()
                ? scale
                : Floats{} + std::numeric_limits<float>::quiet_NaN();
    const Grid grid(scale, zero, integers.low(), integers.high());
    LaneSums sums[3];
    AddUp<3>(
        count, sums, [&](size_t at, Floats * sum) __attribute__((always_inline)) {
          Floats x, units, q;
          Load(numbers + at, x);
          grid.Round(x, units, q);
          const Floats off = units - q;
          Floats weighted_off = off, weighted_q = q;
          if (kWeighted) {
            Floats weight;
            Load(weights + at, weight);
            weighted_off *= weight;
            weighted_q *= weight;
          }
          sum[0] += off * weighted_off;
          sum[1] += units * weighted_q;
          sum[2] += q * weighted_q;
        });
    Floats rounded[3];
    for (size_t k = 0; k < 3; ++k) sums[k].Round(rounded[k]);
    const Floats share = scale * found.inverse_greatest, error = rounded[0] * share * share;
    const Ints better = error < found.error;  // not if NaN
    found.error = better ? error : found.error;
    found.scale = better ? scale : found.scale;
    found.zero = better ? zero : found.zero;
    scale *= rounded[1] / rounded[2];
  }

  // Proposes a scale that covers these shares of the numbers below and above 0.
  [[gnu::always_inline]] void Cover(const Floats& least, const Floats& greatest, float below,
                                    float above, Best& found) const {
    const Floats low = least * below, high = greatest * above;
    Floats scale, zero = {};
    if (integers.asymmetric) {
      const float steps = integers.high();
      scale = high / steps - low / steps;
      RoundScale<Floats, Bits>(stored, scale);
      const Grid grid(scale, Floats{}, 0, steps);
      Floats units;
      grid.Round(-low, units, zero);
    } else {
      const Floats extreme = -low > high ? low : high;
      // The extreme is at -127, or at 127 if it is positive; that of int4 at -8.
      if (integers.bits == 8)
        scale = (extreme < 0 ? -extreme : extreme) / 127;
      else
        scale = extreme / integers.low();
    }
    Try(scale, zero, found);
  }

  [[gnu::always_inline]] void Run() const {
    Floats least = {}, greatest = {};
    for (size_t i = 0; i < count; ++i) {
      Floats x;
      Load(numbers + i * kLanes, x);
      least = x < least ? x : least;
      greatest = x > greatest ? x : greatest;
    }
    const Floats size = -least > greatest ? -least : greatest;
    // A block of zeros keeps the smallest scale.
    Best found = {.scale = Floats{} + (stored == Stored::kFp32 ? std::numeric_limits<float>::min()
                                                               : kLeastNormalHalf),
                  .zero = {},
                  .error = Floats{} + std::numeric_limits<float>::infinity(),
                  .inverse_greatest = 1 / size};
    for (const float share : SharesFor(integers, count)) {
      Cover(least, greatest, share, share, found);
      if (!integers.asymmetric || share == 1) continue;
      Cover(least, greatest, 1, share, found);
      Cover(least, greatest, share, 1, found);
    }
    Floats scale = found.scale;
    // The first time finds a scale to try.
    constexpr int kRefits = 2;
    for (int i = 0; i <= kRefits; ++i) Try(scale, found.zero, found);
    for (size_t lane = 0; lane < best.size(); ++lane) {
      const double unit = size[lane];
      best[lane] = {found.scale[lane], found.zero[lane],
                    std::isfinite(found.error[lane]) ? found.error[lane] * unit * unit : 0};
    }
  }
};

struct Errors {
  const float *numbers, *weights;
  size_t count;  // of vectors
  const Scale& scale;
  const Integers& integers;
  LaneSums* sum;  // in squares of the scale

  [[gnu::always_inline]] void Run() const {
    const Grid grid(scale.scale, scale.zero, integers.low(), integers.high());
    AddUp<1>(
        count, sum, [&](size_t at, Floats * sums) __attribute__((always_inline)) {
          Floats x, units, q;
          Load(numbers + at, x);
          grid.Round(x, units, q);
          const Floats off = units - q;
          Floats weight = Floats{} + 1;
          if (weights) Load(weights + at, weight);
          sums[0] += off * off * weight;
        });
  }
};

struct Rounding {
  std::span<const float> numbers;
  const Scales& scales;
  const Integers& integers;
  std::byte* out;

  [[gnu::always_inline]] void Run() const {
    const size_t size = numbers.size(), block = scales.block;
    const float low = integers.low(), high = integers.high();
    if (block == 1) {
      for (size_t at = 0; at < size; at += kLanes) {
        Floats scale, zero;
        Load(&scales.scales[at], scale);
        Load(&scales.zeros[at], zero);
        const Grid grid(scale, zero, low, high);
        if (at + kLanes <= size)
          Write(grid, zero, &numbers[at], out + at);
        else
          WriteSome(grid, zero, at, size);
      }
      return;
    }
    size_t at = 0, end = block - scales.used;
    for (size_t cell = 0; at < size; ++cell, end += block) {
      const Grid grid(scales.scales[cell], scales.zeros[cell], low, high);
      const Floats zero = Floats{} + scales.zeros[cell];
      const size_t last = end < size ? end : size;
      for (; at + kLanes <= last; at += kLanes) Write(grid, zero, &numbers[at], out + at);
      if (at < last) WriteSome(grid, zero, at, last);
      at = last;
    }
  }

  [[gnu::always_inline]] static void Write(const Grid& grid, const Floats& zero, const float* from,
                                           std::byte* to) {
    Floats x, units, q;
    Load(from, x);
    grid.Round(x, units, q);
    Store(__builtin_convertvector(q + zero, Ints), to);
  }
  // Less than a vector.
  [[gnu::always_inline]] void WriteSome(const Grid& grid, const Floats& zero, size_t at,
                                        size_t end) const {
    float some[kLanes] = {};
    std::byte bytes[kLanes];
    std::copy_n(&numbers[at], end - at, some);
    Write(grid, zero, some, bytes);
    std::copy_n(bytes, end - at, out + at);
  }
};

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
  std::vector<float> by_lane(block * kLanes), weights_by_lane(weights.empty() ? 0 : block * kLanes);
  for (size_t first = 0; first < best.size(); first += kLanes) {
    const size_t count = std::min(kLanes, best.size() - first);
    auto transpose = [&](std::span<const float> from, std::vector<float>& to) {
      // In squares, which read whole cache lines: rows of a power of two compete for the cache.
      const auto row = static_cast<int64_t>(block), lanes = static_cast<int64_t>(kLanes);
      for (int64_t column = 0; column < row; column += lanes)
        for (int64_t lane = 0; lane < static_cast<int64_t>(count); lane += 4)
          TransposeTile<float>(
              reinterpret_cast<const std::byte*>(&from[first * block] + lane * row + column), row,
              std::min<int64_t>(static_cast<int64_t>(count) - lane, 4),
              std::min(row - column, lanes),
              reinterpret_cast<std::byte*>(&to[column * lanes + lane]), lanes);
    };
    transpose(numbers, by_lane);
    if (weights.empty()) {
      RunWide(Search<false>{by_lane.data(), nullptr, block, integers, stored,
                            best.subspan(first, count)});
    } else {
      transpose(weights, weights_by_lane);
      RunWide(Search<true>{by_lane.data(), weights_by_lane.data(), block, integers, stored,
                           best.subspan(first, count)});
    }
  }
}

void ToIntegers(std::span<const float> numbers, const Scales& scales, const Integers& integers,
                std::byte* out) {
  RunWide(Rounding{numbers, scales, integers, out});
}

double ErrorOf(std::span<const float> numbers, std::span<const float> weights, const Scale& scale,
               const Integers& integers) {
  const size_t vectors = numbers.size() / kLanes, done = vectors * kLanes;
  double all = 0;
  auto add = [&](const float* x, const float* w, size_t count) {
    LaneSums sum;
    RunWide(Errors{x, w, count, scale, integers, &sum});
    all += sum.Total();
  };
  add(numbers.data(), weights.empty() ? nullptr : weights.data(), vectors);
  float rest[kLanes] = {}, rest_weights[kLanes] = {};
  std::ranges::copy(numbers.subspan(done), rest);
  std::fill_n(rest_weights, numbers.size() - done, 1.0F);
  if (!weights.empty()) std::ranges::copy(weights.subspan(done), rest_weights);
  add(rest, rest_weights, 1);
  return all * static_cast<double>(scale.scale) * static_cast<double>(scale.scale);
}

}  // namespace mlc::compress
