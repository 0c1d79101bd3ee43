// tools/mlc/interface_report.h - describes a function's interface as text: names, types, sizes, labels. The
// name that an app must use comes first; the tools also accept the source's.
#pragma once

#include <string>

#include "tools/driver/model_interface.h"

namespace mlc::driver {

// Returns the name in the package, followed by the source's name if it differs: input_1 (from
// "input.1").
std::string ShownName(const Port& port);

// Returns lines with the inputs, outputs, states and labels, at most `most` of each.
std::string InterfaceText(const Function& function, size_t most = SIZE_MAX);

}  // namespace mlc::driver
