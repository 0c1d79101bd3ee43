// backends/apple/plan.h - where Core ML means to compute each operation: its compute plan (macOS 14.4).
#pragma once

#import <CoreML/CoreML.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc::apple {

// Of the configuration's function, operations of nested blocks behind the one that has them; constants, which nothing
// computes, are left out. Empty, and `reason` says why, where Core ML makes no plan.
API_AVAILABLE(macos(14.4))
std::vector<OperationPlacement> PlacementsOf(const std::filesystem::path& bundle,
                                             MLModelConfiguration* configuration,
                                             std::string& reason);

}  // namespace mlc::apple
