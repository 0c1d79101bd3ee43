// lib/analysis/input_ranges.h - the values that a program expects in its inputs.
//
// Requirements are propagated backwards from the users of an input: the number of rows of a table
// bounds an index into it, the length of a sequence bounds its lengths, a scale of 1/255 identifies
// an image, a comparison gives its threshold. Casts, data movement and arithmetic with known
// operands transform the bounds on the way.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/ir/program.h"

namespace mlc::analysis {

struct InputRange {
  enum class Kind : uint8_t {
    kNormal,   // N(0, 1), reflected at low or high if one of them is finite
    kReal,     // any number from low to high
    kInteger,  // integers from low to high
    kMask,     // 0 or 1
  };
  Kind kind = Kind::kNormal;
  double low = -std::numeric_limits<double>::infinity();  // inclusive
  double high = std::numeric_limits<double>::infinity();
  // The correlation of the elements, if shape and use determine it: noise causes errors that real
  // data does not.
  enum class Look : uint8_t {
    kNoise,     // independent elements
    kPicture,   // smooth over two dimensions
    kSpectrum,  // decays along a dimension of 2^n + 1 frequencies
    kOneHot,    // one 1 in each row, zeros elsewhere
  } look = Look::kNoise;
  int axis = 0;  // the first of the two dimensions, or that of frequencies or one-hot rows
  // Bounds by index in the last dimension, if they differ (index vectors); else empty.
  std::vector<std::pair<double, double>> parts;
  // For a mask that attention reads: the value that marks valid positions, of which every row has
  // one. -1: any mask.
  int valid = -1;
  // The reason, as in "rows of the table of gather "x""; empty for a default range.
  std::string why;
};
// "0..99", "N(0, 1)", "0 or 1", "pictures in -1..1".
std::string Describe(const InputRange& range);

// Returns the ranges of all inputs, by MIL name, at these sizes of the dynamic dimensions.
std::map<std::string, InputRange> InputRanges(const Function& function, const SymbolSizes& sizes);

}  // namespace mlc::analysis
