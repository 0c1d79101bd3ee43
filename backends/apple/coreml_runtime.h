// backends/apple/coreml_runtime.h - Core ML as a runtime (lib/runtime/runtime.h).
//
// The interface is plain C++, without Objective-C types or exceptions. Failures of Core ML become
// Error "runtime-failed" with Core ML's message; features that this system is too old for,
// "needs-system". Thread-safe.
#pragma once

#include <memory>

#include "lib/runtime/runtime.h"

namespace mlc::apple {

std::unique_ptr<runtime::Runtime> MakeCoreMlRuntime();

// Statistics of the input arrays of all models in this process.
struct ArrayStatistics {
  int64_t made = 0, reused = 0;      // since the process started
  int64_t idle = 0, idle_bytes = 0;  // at present
};
ArrayStatistics CoreMlArrays();

}  // namespace mlc::apple
