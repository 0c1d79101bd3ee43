// lib/verify/layer_comparison.h - locates the layer at which a package starts to deviate from its
// source.
#pragma once

#include <string>
#include <vector>

#include "lib/verify/compare_functions.h"

namespace mlc::verify {

// A value that both programs compute, in its worst step, and the operator that computes it in the
// package.
struct Layer {
  std::string op;
  Compared compared;  // `within` is also true if the reference is constant
};
struct Layers {
  std::vector<Layer> layers;  // in the order of the package
  // The number of values that share a name with the source but hold a different tensor: different
  // dimensions, or a permutation left behind by passes that move transposes.
  int64_t others = 0;
};

// Values correspond if they have the same name and the same dimensions, ignoring those of size 1.
// All source values of one step are held in memory. The source runs with `source_options`, the
// package with `package_options`; `budget` judges the differences.
Layers CompareLayers(const Function& source, const std::vector<StepInputs>& source_steps,
                     engine::EngineOptions source_options, const Function& package,
                     const std::vector<StepInputs>& package_steps,
                     engine::EngineOptions package_options, const Budget& budget);
// The number of values, the first one outside the budget, and a table of the `most` worst ones.
std::string LayersText(const Layers& layers, size_t most);
std::string LayersJson(const Layers& layers);  // a JSON array with all layers

}  // namespace mlc::verify
