#include "lib/compress/block_sums.h"

#include <algorithm>
#include <array>
#include <limits>

#include "lib/compress/lanes.h"

namespace mlc::compress {

namespace {

template <bool kWeighted>
struct Squares {
  const float *numbers, *weights;
  size_t count;  // of vectors
  LaneSums* sums;

  [[gnu::always_inline]] void Run() const {
    AddUp<1>(
        count, sums, [&](size_t at, Floats * sum) __attribute__((always_inline)) {
          Floats x, weight;
          Load(numbers + at, x);
          x *= x;
          if (kWeighted) {
            Load(weights + at, weight);
            x *= weight;
          }
          sum[0] += x;
        });
  }
};

// The sum of x - x is 0, or NaN if a number is not finite.
struct Differences {
  const float* numbers;
  size_t count;  // of vectors
  Floats* sums;

  [[gnu::always_inline]] void Run() const {
    Floats all[2] = {}, x;
    for (size_t i = 0; i < count; ++i) {
      Load(numbers + i * kLanes, x);
      all[i % 2] += x - x;
    }
    *sums = all[0] + all[1];
  }
};

struct Counts {
  const std::array<float, kMostCounted>& middles;
  const float* numbers;
  size_t count;  // of vectors
  std::byte* out;

  [[gnu::always_inline]] void Run() const {
    for (size_t at = 0; at < count * kLanes; at += kLanes) {
      Floats x;
      Load(numbers + at, x);
      Ints below = {};
#pragma GCC unroll 15
      for (const float middle : middles) below -= x > middle;
      Store(below, out + at);
    }
  }
};

}  // namespace

double SumOfSquares(std::span<const float> numbers, std::span<const float> weights) {
  const size_t vectors = numbers.size() / kLanes;
  LaneSums sums;
  if (weights.empty())
    RunWide(Squares<false>{numbers.data(), nullptr, vectors, &sums});
  else
    RunWide(Squares<true>{numbers.data(), weights.data(), vectors, &sums});
  double all = sums.Total();
  for (size_t i = vectors * kLanes; i < numbers.size(); ++i)
    all += static_cast<double>(numbers[i] * numbers[i] * (weights.empty() ? 1 : weights[i]));
  return all;
}

bool AllFinite(std::span<const float> numbers) {
  const size_t vectors = numbers.size() / kLanes;
  Floats sums;
  RunWide(Differences{numbers.data(), vectors, &sums});
  float all = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) all += sums[lane];
  for (const float x : numbers.subspan(vectors * kLanes)) all += x - x;
  return all == 0;
}

void CountBelow(std::span<const float> middles, std::span<const float> numbers, std::byte* out) {
  std::array<float, kMostCounted> all;
  all.fill(std::numeric_limits<float>::infinity());
  std::ranges::copy(middles, all.begin());
  const size_t vectors = numbers.size() / kLanes, done = vectors * kLanes;
  RunWide(Counts{all, numbers.data(), vectors, out});
  if (done == numbers.size()) return;
  float rest[kLanes] = {};
  std::byte bytes[kLanes];
  std::ranges::copy(numbers.subspan(done), rest);
  RunWide(Counts{all, rest, 1, bytes});
  std::copy_n(bytes, numbers.size() - done, out + done);
}

}  // namespace mlc::compress
