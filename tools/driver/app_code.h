// tools/driver/app_code.h - the code with which an app loads and calls a package: one class for each
// function, with its inputs and outputs as properties. The text depends on the program and the name
// of the package only.
#pragma once

#include <filesystem>
#include <string>

#include "tools/driver/inspect.h"

namespace mlc::driver {

// One Swift file. A language model with states also has a loop that generates text with
// swift-transformers.
std::string SwiftCode(const InspectResult& result, const std::filesystem::path& model);
// One Objective-C file (.m, with ARC): the interfaces, which may be moved to a header, and the
// implementations.
std::string ObjectiveCCode(const InspectResult& result, const std::filesystem::path& model);

}  // namespace mlc::driver
