// backends/apple/coreml_runtime.h - Core ML as a runtime (lib/runtime/runtime.h).
//
// Plain C++: neither Objective-C's types nor its exceptions cross this border. What Core ML refuses or throws is Error
// "runtime-failed" in its own words; what this system is too old for, "needs-system". Thread-safe.
#pragma once

#include <memory>

#include "lib/runtime/runtime.h"

namespace mlc {

std::unique_ptr<Runtime> MakeCoreMlRuntime();

// The arrays that inputs are copied into, of all models of this process.
struct ArrayStatistics {
  int64_t made = 0, reused = 0;      // since the process began
  int64_t idle = 0, idle_bytes = 0;  // that wait now
};
ArrayStatistics CoreMlArrays();

}  // namespace mlc
