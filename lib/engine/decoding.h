// lib/engine/decoding.h - loops that make fp32 of the bits of encoded weights, for several
// instruction sets; each rounds as scalar code does, so that all give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/support/half.h"

namespace mlc {

// Which scale and offset serve which elements: one of each `block` neighbours, `used` of the first
// before the first element. Results are rounded to fp16 where asked.
struct Scaling {
  const float *scale, *offset;
  int64_t block, used;
  bool rounds;
};

// What elements of four bits stand for, by their bits.
using Levels = std::array<float, 16>;
inline constexpr Levels kSignedLevels = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1},
                        kUnsignedLevels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// Of other blocks the elements are scaled faster than all levels.
constexpr bool IsWorthLevels(int64_t block) { return block % 16 == 0; }

// Elements of four bits from the beginning of a byte on, as scale_levels has them: the scale of number
// i is number i / block, a multiple of kInBlock.
struct PackedBlocks {
  const uint8_t* elements;
  const Half* scales;
  int64_t block;
  bool has_sign, rounds;
};
inline constexpr int64_t kInBlock = 32;
// What is multiplied by them: of each kInBlock those at even places first, then those at odd ones.
void SplitPairs(const float* x, int64_t count, float* out);

struct DecodingLoops {
  // Two elements of four bits of each byte, the lower first; `sign` is 8 where they have one, else
  // 0.
  void (*split)(const uint8_t* in, int64_t pairs, uint8_t sign, uint8_t* out);
  void (*widen_signed)(const int8_t* in, int64_t count, float* out);
  void (*widen_unsigned)(const uint8_t* in, int64_t count, float* out);
  // out = (in - offset) scale; floats may be scaled in place.
  void (*scale_signed)(const int8_t* in, const Scaling&, int64_t count, float* out);
  void (*scale_unsigned)(const uint8_t* in, const Scaling&, int64_t count, float* out);
  void (*scale_floats)(const float* in, const Scaling&, int64_t count, float* out);
  // Of elements of four bits, from number `first` on: out = (levels[element] - offset) scale, where
  // a block's levels are scaled once. Null where scaling the elements is as fast.
  void (*scale_levels)(const uint8_t* in, int64_t first, const Levels& levels, const Scaling&,
                       int64_t count, float* out);
  // The sum of the products of elements from number `first` on, which are never stored, with x, after
  // SplitPairs; both numbers are multiples of kInBlock. Null where nothing does it faster.
  float (*dot_blocks)(const PackedBlocks& blocks, int64_t first, const float* x, int64_t count);
};
// What this processor can run, the fastest first.
std::span<const DecodingLoops> AvailableDecodingLoops();

}  // namespace mlc
