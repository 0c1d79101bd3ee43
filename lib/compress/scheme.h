// lib/compress/scheme.h - compression schemes: the form in which a weight is stored.
//
//   none                      as it is
//   fp16                      plain floats of the program's precision; encoded weights are decoded
//   int8, int4                scale * q; options: block=N (one scale per N inputs), block=row (one
//                             per output channel), block=tensor, asym (with a zero point)
//   pal1 2 3 4 6 8            a table of 2^n values; options: group=N (one table per N output
//                             channels), axis=in (per N inputs), vec=2|4 (entries are vectors of
//                             output channels), scale=row (one scale per output channel), lut=int8
//   lut4                      pal4:group=32
//   w8a8                      int8, and activations of convolutions and linear layers in 8 bits
//   sparse:0.75  sparse:2:4   zeros, as a share or n of m inputs; +int8, +int4, +palN compress the rest
//   auto:bits=4               for each weight the scheme that loses least within all bytes: bits=N (per
//                             element), size=60% (of what the weights take) or snr=40 (of the outputs)
//
// A scheme is written NAME[:OPTION[,OPTION]...]. int8 has one scale per row by default, int4 one per
// 32 inputs, palettes one table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc::compress {

struct Scheme {
  enum class Values : uint8_t { kKept, kPlain, kInteger, kPalette, kAuto };
  Values values = Values::kKept;
  int bits = 0;  // of an integer or an index

  // Integers: inputs that share a scale.
  static constexpr int64_t kRow = 0, kTensor = -1;
  int64_t block = kRow;
  bool asymmetric = false;
  bool activations = false;  // what the weight is multiplied by is quantised, too

  // Palettes.
  int64_t group = 0;  // channels per table; 0: one table
  bool input_groups = false;
  int64_t vector = 1;
  bool row_scale = false, int8_table = false;

  // Sparsity: a share of zeros, or n zeros of every m inputs.
  double zeros = 0;
  int zeros_of = 0, zeros_among = 0;
  bool sparse() const { return zeros > 0 || zeros_among > 0; }

  // kAuto: what is to be reached by all weights of the rule together.
  enum class Goal : uint8_t { kNone, kBits, kSize, kSnr };  // per element; a share; in dB
  Goal goal = Goal::kNone;
  double wanted = 0;

  bool operator==(const Scheme&) const = default;
};

// Parses a scheme. Error "usage".
Scheme ParseScheme(std::string_view text);
// Returns whether the text begins with the name of a scheme, so that it is not a selector.
bool BeginsWithScheme(std::string_view text);
// Returns whether the text is an option of a scheme, so that a comma before it does not begin a
// rule.
bool BeginsWithOption(std::string_view text);
// The shortest text that gives the scheme.
std::string Text(const Scheme& scheme);
// The first target with Core ML's operations for the scheme; for kAuto, for all that it chooses from.
Opset Since(const Scheme& scheme);
// The first target on which the scheme can be used.
Opset LowestTarget(const Scheme& scheme);
// What kAuto chooses from, on a target; larger ones first.
std::vector<Scheme> Choices(Opset target);

}  // namespace mlc::compress
