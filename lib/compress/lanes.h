// lib/compress/lanes.h - vectors of numbers, and functions compiled for several instruction sets.
//
// Results do not depend on the processor: a vector has kLanes numbers everywhere, and lanes are
// added in a fixed order. Vectors are not returned, because that would depend on the instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlc::compress {

inline constexpr size_t kLanes = 16;

typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));

[[gnu::always_inline]] inline void Load(const float* from, Floats& to) {
  typedef float Array __attribute__((vector_size(64), aligned(4), may_alias));
  to = *reinterpret_cast<const Array*>(from);
}
// Stores numbers from -128 to 255 as bytes.
[[gnu::always_inline]] inline void Store(const Ints& from, std::byte* to) {
  typedef int8_t Array __attribute__((vector_size(16), aligned(1), may_alias));
  *reinterpret_cast<Array*>(to) = __builtin_convertvector(from, Array);
}

// The integers of the scale of one block, or of those of kLanes blocks.
class Grid {
 public:
  template <class Number>
  [[gnu::always_inline]] Grid(const Number& scale, const Number& zero, float least, float greatest)
      : inverse_(Floats{} + 1.0F / scale),
        low_(__builtin_bit_cast(Ints, Floats{} + (least - zero + kWhole))),
        high_(__builtin_bit_cast(Ints, Floats{} + (greatest - zero + kWhole))) {}
  // Sets `units` to x / scale, and q to the integer for it, minus the zero point.
  [[gnu::always_inline]] void Round(const Floats& x, Floats& units, Floats& q) const {
    units = x * inverse_;
    // Processors compare integers while they add floats. Their order is that of positive floats.
    Ints sum = __builtin_bit_cast(Ints, units + kWhole);
    sum = sum < high_ ? sum : high_;
    sum = sum > low_ ? sum : low_;
    q = __builtin_bit_cast(Floats, sum) - kWhole;
  }

 private:
  static constexpr float kWhole = 0x1.8p23F;  // adding it rounds to an integer (below 2^22)
  Floats inverse_;
  Ints low_, high_;  // the limits, minus the zero point, plus kWhole
};

// A sum for each lane, in double precision.
struct LaneSums {
  typedef double Doubles __attribute__((vector_size(64)));
  Doubles halves[2];

  [[gnu::always_inline]] void Add(const Floats& part) {
    halves[0] += __builtin_convertvector(
        __builtin_shufflevector(part, part, 0, 1, 2, 3, 4, 5, 6, 7), Doubles);
    halves[1] += __builtin_convertvector(
        __builtin_shufflevector(part, part, 8, 9, 10, 11, 12, 13, 14, 15), Doubles);
  }
  [[gnu::always_inline]] void Round(Floats& sums) const {
    typedef float Half __attribute__((vector_size(32)));
    sums = __builtin_shufflevector(__builtin_convertvector(halves[0], Half),
                                   __builtin_convertvector(halves[1], Half), 0, 1, 2, 3, 4, 5, 6, 7,
                                   8, 9, 10, 11, 12, 13, 14, 15);
  }
  // The sum of all lanes.
  double Total() const {
    double total = 0;
    for (const Doubles& half : halves)
      for (size_t lane = 0; lane < kLanes / 2; ++lane) total += half[lane];
    return total;
  }
};

// Adds up what `term` adds to several sums for each of `count` vectors. Floats are summed in parts,
// because long sums lose precision.
template <size_t kSums, class F>
[[gnu::always_inline]] inline void AddUp(size_t count, LaneSums* sums, const F& term) {
  constexpr size_t kPart = 1024;
  for (size_t k = 0; k < kSums; ++k) sums[k] = {};
  for (size_t begin = 0; begin < count; begin += kPart) {
    const size_t end = count - begin < kPart ? count : begin + kPart;
    Floats part[kSums] = {};
#pragma GCC unroll 4
    for (size_t i = begin; i < end; ++i) term(i * kLanes, part);
    for (size_t k = 0; k < kSums; ++k) sums[k].Add(part[k]);
  }
}

#if defined(__x86_64__)
namespace detail {

template <class Task>
[[gnu::target("avx2")]] void RunAvx2(const Task& task) {
  task.Run();
}
template <class Task>
[[gnu::target("avx512f,avx512bw,avx512vl")]] void RunAvx512(const Task& task) {
  task.Run();
}
inline const bool kAvx2 = __builtin_cpu_supports("avx2"),
                  kAvx512 =
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");

}  // namespace detail
#endif

// Runs a task with the widest vectors of the processor. Its function Run must be always_inline.
template <class Task>
void RunWide(const Task& task) {
#if defined(__x86_64__)
  if (detail::kAvx512) return detail::RunAvx512(task);
  if (detail::kAvx2) return detail::RunAvx2(task);
#endif
  task.Run();
}

}  // namespace mlc::compress
