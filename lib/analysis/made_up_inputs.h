// lib/analysis/made_up_inputs.h - inputs that exercise a program, where nobody gave any.
//
// Sample 0 has every open dimension at its lower bound, or where those cannot be computed together,
// at the smallest size that can, sample 1 at the largest size up to its upper bound at which a run
// stays below `most_work`, the others in between. Values lie in InputRanges, or where the caller
// says. A sample is the same on every machine for a seed.
#pragma once

#include "lib/analysis/input_ranges.h"

namespace mlc {

struct MadeUpOptions {
  uint64_t seed = 0;
  int sample = 0;
  // By MIL name or the source's: inclusive; where the program does not say what shall be drawn.
  std::map<std::string, std::pair<double, double>> ranges = {};
  std::map<std::string, Dims> shapes = {};  // likewise; what agrees with the declared shape counts
  double most_work = 1e9;  // multiply-adds; an eighth as many elements, those of inputs too
  // SmallestSizes of the function, for who wants many samples; empty: they are found each time.
  SymbolSizes smallest = {};
};

struct MadeUpInputs {
  std::map<std::string, Tensor> tensors;  // by MIL name, in the types of the function's values
  std::map<std::string, InputRange> ranges;
};

// Tensors for the inputs that are not `given` (by MIL name, in any type). Sizes agree with those.
// An optional input takes its default in even samples. Error "input-shape" for an input of no known
// size, "unsupported-dtype" for one of strings.
MadeUpInputs MakeUpInputs(const Function& function, const std::map<std::string, Tensor>& given,
                          const MadeUpOptions& options);

// Only the shapes that MakeUpInputs would choose, by MIL name.
std::map<std::string, Dims> MadeUpShapes(const Function& function,
                                         const std::map<std::string, Tensor>& given,
                                         const MadeUpOptions& options);

// The sizes of open dimensions that it would choose.
SymbolSizes MadeUpSizes(const Function& function, const std::map<std::string, Tensor>& given,
                        const MadeUpOptions& options);

// How many samples are worth comparing: 16, less where one takes much work, at least 2.
int UsualSamples(const Function& function);

}  // namespace mlc
