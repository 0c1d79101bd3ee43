// backends/apple/coreml_runtime.h - Core ML as a runtime (lib/runtime/runtime.h).
//
// Plain C++: neither Objective-C's types nor its exceptions cross this border. What Core ML refuses or throws is Error
// "runtime-failed" in its own words; what this system is too old for, "needs-system". Thread-safe.
#pragma once

#include <memory>

#include "lib/runtime/runtime.h"

namespace mlc {

std::unique_ptr<Runtime> MakeCoreMlRuntime();

}  // namespace mlc
