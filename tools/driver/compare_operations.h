// tools/driver/compare_operations.h - compares the intermediate results of a runtime with the
// reference engine.
#pragma once

#include <map>
#include <string>

#include "lib/verify/layer_comparison.h"
#include "tools/driver/model.h"

namespace mlc::driver {

// Compares the results of operations outside of branches and loops, by name, for one prediction.
// Runtimes do not expose intermediate results, so a package that declares them as outputs is
// written, compiled and loaded as `load` says; operations that the original package fuses may be
// computed separately there. `inputs`: by MIL name, of the model's function. Throws the errors of
// writing a package and of the runtime.
verify::Layers CompareOperations(const Model& model, const ModelOptions& load,
                                 const std::map<std::string, Tensor>& inputs,
                                 const verify::Budget& budget, Diagnostics& diagnostics);

}  // namespace mlc::driver
