// backends/apple/system.h - this machine: versions, devices, and what of Core ML it is too old for.
#pragma once

#import <CoreML/CoreML.h>

#include <string>
#include <string_view>

#include "lib/runtime/runtime.h"
#include "lib/support/error.h"

namespace mlc::apple {

// Error "needs-system": "states need macOS 15, this is macOS 14.4".
Error NeedsSystem(std::string_view feature, std::string_view version);
// Error "needs-system" for units that this machine has not, as far as it tells.
void CheckUnits(Units units);
Capabilities SystemCapabilities();
// Nil, and what this code does not know: kUnknown.
API_AVAILABLE(macos(14.0))
Device ToDevice(id<MLComputeDeviceProtocol> device);

}  // namespace mlc::apple
