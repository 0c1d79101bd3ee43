// lib/engine/weight_decoding.h - loops that decode encoded weights to fp32, for several instruction
// sets. Each rounds like the scalar code, so that results are bit-identical.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/support/half.h"

namespace mlc::engine {

// Scale and offset of blocks of `block` adjacent elements; the first element is element `used` of
// its block. Results are rounded to fp16 if `rounds` is set.
struct Scaling {
  const float *scale, *offset;
  int64_t block, used;
  bool rounds;
};

// The values of the 16 codes of a 4-bit element.
using Levels = std::array<float, 16>;
inline constexpr Levels kSignedLevels = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1},
                        kUnsignedLevels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// With other block sizes, scaling the elements is faster than scaling all levels.
constexpr bool IsWorthLevels(int64_t block) { return block % 16 == 0; }

// 4-bit elements, starting at the beginning of a byte, that scale_levels can decode: element i has
// scale i / block, and `block` is a multiple of kInBlock.
struct PackedBlocks {
  const uint8_t* elements;
  const Half* scales;
  int64_t block;
  bool has_sign, rounds;
};
inline constexpr int64_t kInBlock = 32;
// Reorders the other factor of dot_blocks: in each group of kInBlock elements, those at even
// positions first, then those at odd positions.
void SplitPairs(const float* x, int64_t count, float* out);

struct DecodingLoops {
  // Unpacks two 4-bit elements from each byte, the low nibble first. `sign` is 8 for signed
  // elements and 0 for unsigned ones.
  void (*split)(const uint8_t* in, int64_t pairs, uint8_t sign, uint8_t* out);
  void (*widen_signed)(const int8_t* in, int64_t count, float* out);
  void (*widen_unsigned)(const uint8_t* in, int64_t count, float* out);
  // out = (in - offset) * scale; scale_floats may work in place.
  void (*scale_signed)(const int8_t* in, const Scaling&, int64_t count, float* out);
  void (*scale_unsigned)(const uint8_t* in, const Scaling&, int64_t count, float* out);
  void (*scale_floats)(const float* in, const Scaling&, int64_t count, float* out);
  // For 4-bit elements, starting with element `first`: out = (levels[element] - offset) * scale,
  // where the levels are scaled once per block. Null if scaling the elements is as fast.
  void (*scale_levels)(const uint8_t* in, int64_t first, const Levels& levels, const Scaling&,
                       int64_t count, float* out);
  // Returns the dot product of the elements, starting with element `first`, and x (after
  // SplitPairs), without storing the decoded elements. `first` and `count` are multiples of
  // kInBlock. Null if there is no faster implementation.
  float (*dot_blocks)(const PackedBlocks& blocks, int64_t first, const float* x, int64_t count);
};
// The loops that this processor supports, fastest first.
std::span<const DecodingLoops> AvailableDecodingLoops();

}  // namespace mlc::engine
