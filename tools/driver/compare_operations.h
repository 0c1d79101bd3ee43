// tools/driver/compare_operations.h - what a runtime computes on its way to the outputs, held against mlc's engine.
#pragma once

#include <map>
#include <string>

#include "lib/runtime/guarded_model.h"
#include "lib/verify/layers.h"
#include "tools/driver/compiled_model_cache.h"

namespace mlc {

// Results of operations outside of branches and loops, by name, of one prediction. No runtime shows them: a package in
// which they are outputs is made, compiled and loaded for `load`'s units, so that what is fused in the package itself
// may be computed apart there. Errors are those of writing a package and of the runtime.
struct TimeLimits {
  Worker::Timeout predict, load;
};
Layers CompareOperations(const std::shared_ptr<Runtime>& runtime, const Program& program,
                         const Function& function, const std::map<std::string, Tensor>& inputs,
                         const LoadOptions& load, const TimeLimits& limits, const Budget& budget,
                         Diagnostics& diagnostics);

}  // namespace mlc
