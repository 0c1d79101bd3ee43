// lib/verify/layers.h - where on its way a package leaves its source.
#pragma once

#include <string>
#include <vector>

#include "lib/verify/functions.h"

namespace mlc {

// A value that both programs compute, in the worst step, and what computes it in the package.
struct Layer {
  std::string op;
  Compared compared;  // `within` too where the reference is constant
};
struct Layers {
  std::vector<Layer> layers;  // in the package's order
  // Values that have the name of one of the source and hold another tensor: other dimensions, or
  // the same elements in another order, as passes leave it that move transpositions.
  int64_t others = 0;
};

// Twins have one name and the same dimensions, those of size 1 aside. Holds the source's values of
// one step in memory. Judges by `budget`; values of the source are computed with `source_options`.
Layers CompareLayers(const Function& source, const std::vector<StepInputs>& source_steps,
                     EngineOptions source_options, const Function& package,
                     const std::vector<StepInputs>& package_steps, EngineOptions package_options,
                     const Budget& budget);
// How many there are, the first that is outside the budget, and a table of the `most` worst.
std::string LayersText(const Layers& layers, size_t most);
std::string LayersJson(const Layers& layers);  // a JSON array of all

}  // namespace mlc
