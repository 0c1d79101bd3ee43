// lib/compress/scales.h - the scale and zero point with which integers represent a block of numbers
// best.
//
// Candidates for the scale trade clipping error for rounding error; the best are improved by
// alternating between rounding the numbers and fitting the scale to the integers by least squares.
#pragma once

#include <cstddef>
#include <span>

#include "lib/compress/rounding.h"

namespace mlc::compress {

struct Integers {
  int bits = 8;  // 8 or 4
  bool asymmetric = false;
  float low() const;   // asymmetric: 0; int8: -127; int4: -8
  float high() const;  // asymmetric: 2^bits - 1; int8: 127; int4: 7
};

// Represents x by scale * (q - zero). Symmetric integers have the zero point 0, and a scale that
// may be negative: the extreme of a block of int4 is then at -8.
struct Scale {
  float scale = 0, zero = 0;
  double error = 0;  // what BestScales found, as ErrorOf
};

// Chooses the scales of blocks of numbers, one after the other. `weights` are the importance of each
// number; an empty span stands for ones. A block of zeros has the smallest scale. Numbers must be
// finite.
void BestScales(std::span<const float> numbers, std::span<const float> weights, size_t block,
                const Integers& integers, Stored stored, std::span<Scale> best);

// The scales and zero points of consecutive blocks of numbers.
struct Scales {
  std::span<const float> scales, zeros;  // filled up to a multiple of kLanes (lanes.h)
  size_t block = 1;                      // numbers in a block
  size_t used = 0;                       // numbers of the first block that are left out
};

// Writes the integers of numbers, in bytes.
void ToIntegers(std::span<const float> numbers, const Scales& scales, const Integers& integers,
                std::byte* out);
// Returns the sum of squared errors of numbers, each with its weight.
double ErrorOf(std::span<const float> numbers, std::span<const float> weights, const Scale& scale,
               const Integers& integers);

}  // namespace mlc::compress
