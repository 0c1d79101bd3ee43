// lib/analysis/generated_inputs.h - generates inputs for a program that has none.
//
// In sample 0 every dynamic dimension has its lower bound, or if these sizes are not valid
// together, the smallest valid sizes. In sample 1 it has the largest size, up to its upper bound,
// with a run below `most_work`. Other samples lie in between. Values lie in InputRanges or in the
// ranges of the caller. A seed gives the same samples on every machine.
#pragma once

#include "lib/analysis/input_ranges.h"

namespace mlc::analysis {

struct GeneratedInputOptions {
  uint64_t seed = 0;
  int sample = 0;
  // Inclusive ranges by MIL name or source name, for inputs whose range does not follow from the
  // program.
  std::map<std::string, std::pair<double, double>> ranges = {};
  // Shapes by the same names; those that disagree with the declared shape are ignored.
  std::map<std::string, Dims> shapes = {};
  // In multiply-adds; the limit for elements, including those of inputs, is an eighth of it.
  double most_work = 1e9;
  // SmallestSizes of the function, which callers of many samples compute once; empty: computed by
  // each call.
  SymbolSizes smallest = {};
};

struct GeneratedInputs {
  std::map<std::string, Tensor> tensors;  // by MIL name, with the types of the function's inputs
  std::map<std::string, InputRange> ranges;
};

// Generates tensors for all inputs that are not `given` (by MIL name, in any type), with sizes that
// agree with the given ones. An optional input takes its default in even samples. Throws Error
// "input-shape" for an input of unknown size and "unsupported-dtype" for an input of strings.
GeneratedInputs GenerateInputs(const Function& function, const std::map<std::string, Tensor>& given,
                               const GeneratedInputOptions& options);

// Returns the shapes that MakeUpInputs would choose, by MIL name.
std::map<std::string, Dims> GeneratedShapes(const Function& function,
                                            const std::map<std::string, Tensor>& given,
                                            const GeneratedInputOptions& options);

// Returns the sizes of dynamic dimensions that MakeUpInputs would choose.
SymbolSizes GeneratedSizes(const Function& function, const std::map<std::string, Tensor>& given,
                           const GeneratedInputOptions& options);

// Returns the default number of samples to compare: 16, or fewer if one sample is expensive, but at
// least 2.
int DefaultSamples(const Function& function);

}  // namespace mlc::analysis
