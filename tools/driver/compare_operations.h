// tools/driver/compare_operations.h - compares the intermediate results of a runtime with the
// reference engine.
#pragma once

#include <map>
#include <string>

#include "lib/runtime/guarded_model.h"
#include "lib/verify/layer_bisection.h"
#include "tools/driver/compiled_model_cache.h"

namespace mlc::driver {

// Compares the results of operations outside of branches and loops, by name, for one prediction.
// Runtimes do not expose intermediate results, so a package that declares them as outputs is
// written, compiled and loaded for `load`'s units; operations that the original package fuses may
// be computed separately there. Throws the errors of writing a package and of the runtime.
struct TimeLimits {
  runtime::Worker::Timeout predict, load;
};
verify::Layers CompareOperations(const std::shared_ptr<runtime::Runtime>& runtime,
                                 const Program& program, const Function& function,
                                 const std::map<std::string, Tensor>& inputs,
                                 const runtime::LoadOptions& load, const TimeLimits& limits,
                                 const verify::Budget& budget, Diagnostics& diagnostics);

}  // namespace mlc::driver
