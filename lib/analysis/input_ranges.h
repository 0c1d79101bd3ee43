// lib/analysis/input_ranges.h - which values a program expects in its inputs.
//
// What an input's users ask of it is followed back from them: the rows of a table bound what
// indexes it, the steps of a sequence its lengths, a scale of 1/255 tells an image, a test its
// threshold. Casts, moves and arithmetic with what is known translate the bounds on their way.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/ir/program.h"

namespace mlc {

struct InputRange {
  enum class Kind : uint8_t {
    kNormal,   // N(0, 1), folded at a bound where one of low and high is finite
    kReal,     // any number from low to high
    kInteger,  // whole numbers from low to high
    kMask,     // 0 and 1
  };
  Kind kind = Kind::kNormal;
  double low = -std::numeric_limits<double>::infinity();  // inclusive
  double high = std::numeric_limits<double>::infinity();
  // How elements go together, where shape and use tell: noise has errors that no data has.
  enum class Look : uint8_t {
    kNoise,     // each element by itself
    kPicture,   // smooth over two dimensions
    kSpectrum,  // decays along a dimension of 2^n + 1 frequencies
    kOneHot,    // one 1 in each row, else zeros
  } look = Look::kNoise;
  int axis = 0;  // the first of the two, of the frequencies, or of what is one-hot
  // By place in the last dimension, where it differs (index vectors); else empty.
  std::vector<std::pair<double, double>> parts;
  // Of a mask that attention reads: the value of what takes part, of which every row has one. -1:
  // any mask.
  int valid = -1;
  std::string why;  // "rows of the table of gather "x""; empty: the program says nothing
};
// "0..99", "N(0, 1)", "0 or 1", "pictures in -1..1".
std::string Describe(const InputRange& range);

// Of every input, by MIL name, at these sizes of the open dimensions.
std::map<std::string, InputRange> InputRanges(const Function& function, const SymbolSizes& sizes);

}  // namespace mlc
