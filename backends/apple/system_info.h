// backends/apple/system_info.h - the versions and devices of this machine, and the features of Core
// ML that it lacks.
#pragma once

#import <CoreML/CoreML.h>

#include <string>
#include <string_view>

#include "lib/runtime/runtime.h"
#include "lib/support/error.h"

namespace mlc::apple {

// Error "needs-system": "a compute plan requires macOS 14.4, this is macOS 14.0".
Error NeedsSystem(std::string_view feature, std::string_view version);
// Error "needs-system" for units that this machine is known to lack.
void CheckUnits(runtime::Units units);
runtime::Capabilities SystemCapabilities();
// Nil and unknown devices give kUnknown.
API_AVAILABLE(macos(14.0))
runtime::Device ToDevice(id<MLComputeDeviceProtocol> device);

}  // namespace mlc::apple
