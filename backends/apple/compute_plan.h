// backends/apple/compute_plan.h - the compute plan of Core ML (macOS 14.4): the device planned for
// each operation.
#pragma once

#import <CoreML/CoreML.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc::apple {

// Returns the placements for the configured function. Operations in nested blocks follow the one
// that contains them; constants are omitted. If Core ML provides no plan, returns nothing and sets
// `reason`.
API_AVAILABLE(macos(14.4))
std::vector<runtime::OperationPlacement> PlacementsOf(const std::filesystem::path& bundle,
                                                      MLModelConfiguration* configuration,
                                                      std::string& reason);

}  // namespace mlc::apple
