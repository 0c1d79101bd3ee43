#include "lib/compress/block_sums.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mlc::compress {

namespace {

typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(128), aligned(8), may_alias));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef int8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));

constexpr float kWhole = 0x1.8p23F;  // adding it rounds to an integer (below 2^22)
constexpr size_t kPart = 1024;       // numbers whose floats are summed

[[gnu::always_inline]] inline const Floats& At(const float* from) {
  return *reinterpret_cast<const Floats*>(from);
}

// Sets `inverse` to 1 / scale, or 0 where a scale is so small that this overflows. Vectors are not
// returned, because that would depend on the instruction set.
[[gnu::always_inline]] inline void Invert(const Floats& scale, Floats& inverse) {
  const Floats most = Floats{} + std::numeric_limits<float>::max();
  inverse = 1 / scale;
  const Floats magnitude = inverse < 0 ? -inverse : inverse;
  inverse = magnitude <= most ? inverse : Floats{};
}

// A grid in vectors.
struct Grid {
  Floats scale, inverse, zero, low, high;

  // Sets q to the integer that stands for x, minus the zero point.
  [[gnu::always_inline]] void Round(const Floats& x, Floats& q) const {
    q = x * inverse + zero;
    q = q < high ? q : high;
    q = q > low ? q : low;
    q = q + kWhole - kWhole - zero;
  }
};

[[gnu::always_inline]] inline void SetGrid(const LaneGrids& grids, float low, float high,
                                           Grid& grid) {
  grid.scale = At(grids.scale.data());
  grid.zero = At(grids.zero.data());
  grid.low = Floats{} + low;
  grid.high = Floats{} + high;
  Invert(grid.scale, grid.inverse);
}

// A computation over numbers, and weights if there are any. Blocks are stored by number and lane.
struct Task {
  enum Kind : uint8_t { kErrors, kFit, kExtremes, kSquares, kBytes, kCounts } kind;
  const float *numbers = nullptr, *weights = nullptr;
  size_t count = 0;  // of a block
  std::span<const LaneGrids> grids = {};
  float low = 0, high = 0;
  std::array<double, kLanes>* sums = nullptr;  // kErrors: by grid; kFit: 2; kSquares: 1
  float *least = nullptr, *greatest = nullptr;
  std::byte* bytes = nullptr;
  const float* middles = nullptr;  // kCounts: kMostCounted
};

// Adds up what `term` adds to one or two sums of lanes for each number.
template <size_t kSums, class F>
[[gnu::always_inline]] inline void AddUp(const Task& task, std::array<double, kLanes>* sums,
                                         const F& term) {
  Doubles all[kSums] = {};
  for (size_t begin = 0; begin < task.count; begin += kPart) {
    const size_t end = std::min(begin + kPart, task.count);
    Floats part[kSums] = {};
    for (size_t i = begin; i < end; ++i) term(i * kLanes, part);
    for (size_t k = 0; k < kSums; ++k) all[k] += __builtin_convertvector(part[k], Doubles);
  }
  for (size_t k = 0; k < kSums; ++k) *reinterpret_cast<Doubles*>(sums[k].data()) = all[k];
}

[[gnu::always_inline]] inline void Errors(const Task& task) {
  const float *numbers = task.numbers, *weights = task.weights;
  for (size_t g = 0; g < task.grids.size(); ++g) {
    Grid grid;
    SetGrid(task.grids[g], task.low, task.high, grid);
    auto off = [&](size_t at, Floats & off) __attribute__((always_inline)) {
      grid.Round(At(numbers + at), off);
      off = At(numbers + at) - grid.scale * off;
    };
    if (weights)
      AddUp<1>(
          task, task.sums + g, [&](size_t at, Floats * sum) __attribute__((always_inline)) {
            Floats error;
            off(at, error);
            sum[0] += error * error * At(weights + at);
          });
    else
      AddUp<1>(
          task, task.sums + g, [&](size_t at, Floats * sum) __attribute__((always_inline)) {
            Floats error;
            off(at, error);
            sum[0] += error * error;
          });
  }
}

// The sums of x q and q q.
[[gnu::always_inline]] inline void Fit(const Task& task) {
  Grid grid;
  SetGrid(task.grids[0], task.low, task.high, grid);
  AddUp<2>(
      task, task.sums, [&](size_t at, Floats * sums) __attribute__((always_inline)) {
        Floats q;
        grid.Round(At(task.numbers + at), q);
        Floats weighted = q;
        if (task.weights) weighted *= At(task.weights + at);
        sums[0] += At(task.numbers + at) * weighted;
        sums[1] += q * weighted;
      });
}

[[gnu::always_inline]] inline void Extremes(const Task& task) {
  Floats low = {}, high = {};
  for (size_t i = 0; i < task.count; ++i) {
    const Floats x = At(task.numbers + i * kLanes);
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  *reinterpret_cast<Floats*>(task.least) = low;
  *reinterpret_cast<Floats*>(task.greatest) = high;
}

// Numbers follow one another: `count` times kLanes.
[[gnu::always_inline]] inline void Squares(const Task& task) {
  AddUp<1>(
      task, task.sums, [&](size_t at, Floats * sum) __attribute__((always_inline)) {
        const Floats square = At(task.numbers + at) * At(task.numbers + at);
        sum[0] += task.weights ? square * At(task.weights + at) : square;
      });
}

[[gnu::always_inline]] inline void ToBytes(const Task& task) {
  Grid grid;
  SetGrid(task.grids[0], task.low, task.high, grid);
  for (size_t i = 0; i < task.count; ++i) {
    Floats q;
    grid.Round(At(task.numbers + i * kLanes), q);
    *reinterpret_cast<Bytes*>(task.bytes + i * kLanes) =
        __builtin_convertvector(__builtin_convertvector(q + grid.zero, Ints), Bytes);
  }
}

[[gnu::always_inline]] inline void Count(const Task& task) {
  for (size_t i = 0; i < task.count; ++i) {
    const Floats& x = At(task.numbers + i * kLanes);
    Ints below = {};
#pragma GCC unroll 15
    for (size_t m = 0; m < kMostCounted; ++m) below -= x > task.middles[m];
    *reinterpret_cast<Bytes*>(task.bytes + i * kLanes) = __builtin_convertvector(below, Bytes);
  }
}

[[gnu::always_inline]] inline void Run(const Task& task) {
  switch (task.kind) {
    case Task::kErrors:
      return Errors(task);
    case Task::kFit:
      return Fit(task);
    case Task::kExtremes:
      return Extremes(task);
    case Task::kSquares:
      return Squares(task);
    case Task::kBytes:
      return ToBytes(task);
    case Task::kCounts:
      return Count(task);
  }
}

void BaselineRun(const Task& task) { Run(task); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void Avx2Run(const Task& task) { Run(task); }
[[gnu::target("avx512f,avx512bw,avx512vl")]] void Avx512Run(const Task& task) { Run(task); }
const auto kRun = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
                      ? Avx512Run
                  : __builtin_cpu_supports("avx2") ? Avx2Run
                                                   : BaselineRun;
#else
constexpr auto kRun = BaselineRun;
#endif

std::vector<float> InLanes(std::span<const float> from, size_t block) {
  std::vector<float> lanes(from.empty() ? 0 : block * kLanes);
  const size_t count = from.size() / block;
  for (size_t lane = 0; lane < count; ++lane)
    for (size_t i = 0; i < block; ++i) lanes[i * kLanes + lane] = from[lane * block + i];
  return lanes;
}

}  // namespace

BlockLanes::BlockLanes(std::span<const float> numbers, std::span<const float> weights, size_t block)
    : count_(numbers.size() / block),
      numbers_(InLanes(numbers, block)),
      weights_(InLanes(weights, block)) {}

void BlockLanes::Extremes(std::array<float, kLanes>& least,
                          std::array<float, kLanes>& greatest) const {
  kRun({.kind = Task::kExtremes,
        .numbers = numbers_.data(),
        .count = numbers_.size() / kLanes,
        .least = least.data(),
        .greatest = greatest.data()});
}

void BlockLanes::Errors(std::span<const LaneGrids> grids, float low, float high,
                        std::array<double, kLanes>* sums) const {
  kRun({.kind = Task::kErrors,
        .numbers = numbers_.data(),
        .weights = weights_.empty() ? nullptr : weights_.data(),
        .count = numbers_.size() / kLanes,
        .grids = grids,
        .low = low,
        .high = high,
        .sums = sums});
}

std::array<float, kLanes> BlockLanes::FittedScales(const LaneGrids& grids, float low,
                                                   float high) const {
  std::array<double, kLanes> sums[2];
  kRun({.kind = Task::kFit,
        .numbers = numbers_.data(),
        .weights = weights_.empty() ? nullptr : weights_.data(),
        .count = numbers_.size() / kLanes,
        .grids = {&grids, 1},
        .low = low,
        .high = high,
        .sums = sums});
  std::array<float, kLanes> fitted;
  for (size_t i = 0; i < kLanes; ++i)
    fitted[i] = sums[1][i] > 0 ? static_cast<float>(sums[0][i] / sums[1][i]) : 0;
  return fitted;
}

double SumOfSquares(std::span<const float> numbers, std::span<const float> weights) {
  const size_t whole = numbers.size() / kLanes * kLanes;
  std::array<double, kLanes> sums;
  kRun({.kind = Task::kSquares,
        .numbers = numbers.data(),
        .weights = weights.empty() ? nullptr : weights.data(),
        .count = whole / kLanes,
        .sums = &sums});
  double all = 0;
  for (const double sum : sums) all += sum;
  for (size_t i = whole; i < numbers.size(); ++i)
    all += static_cast<double>(numbers[i] * numbers[i] * (weights.empty() ? 1 : weights[i]));
  return all;
}

bool AllFinite(std::span<const float> numbers) {
  // The sum of x - x is 0, or NaN if a number is not finite.
  std::array<float, 2 * kLanes> sums = {};
  size_t i = 0;
  for (; i + sums.size() <= numbers.size(); i += sums.size())
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += numbers[i + k] - numbers[i + k];
  for (; i < numbers.size(); ++i) sums[0] += numbers[i] - numbers[i];
  return std::ranges::all_of(sums, [](float sum) { return sum == 0; });
}

namespace {

// Runs a task whose numbers follow one another and give a byte each.
void RunToBytes(Task task, std::span<const float> numbers, std::byte* out) {
  const size_t whole = numbers.size() / kLanes * kLanes;
  task.numbers = numbers.data();
  task.count = whole / kLanes;
  task.bytes = out;
  kRun(task);
  if (whole == numbers.size()) return;
  float rest[kLanes] = {};
  std::byte bytes[kLanes];
  std::copy(numbers.begin() + whole, numbers.end(), rest);
  task.numbers = rest;
  task.count = 1;
  task.bytes = bytes;
  kRun(task);
  std::copy(bytes, bytes + (numbers.size() - whole), out + whole);
}

}  // namespace

void ToBytes(std::span<const float> numbers, float scale, float zero, float low, float high,
             std::byte* out) {
  LaneGrids grids;
  grids.scale.fill(scale);
  grids.zero.fill(zero);
  RunToBytes({.kind = Task::kBytes, .grids = {&grids, 1}, .low = low, .high = high}, numbers, out);
}

void CountBelow(std::span<const float> middles, std::span<const float> numbers, std::byte* out) {
  std::array<float, kMostCounted> all;
  all.fill(std::numeric_limits<float>::infinity());
  std::ranges::copy(middles, all.begin());
  RunToBytes({.kind = Task::kCounts, .middles = all.data()}, numbers, out);
}

}  // namespace mlc::compress
