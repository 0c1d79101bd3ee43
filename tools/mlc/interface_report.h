// tools/mlc/interface_report.h - describes a function's interface: names, types, sizes, labels. The
// name that an app must use comes first; the tools also accept the source's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/driver/model_interface.h"

namespace mlc::driver {

// Returns the name in the package, followed by the source's name if it differs: input_1 (from
// "input.1").
std::string ShownName(const Port& port);

// Returns lines with the inputs, outputs, states and labels, at most `most` of each.
std::string InterfaceText(const Function& function, size_t most = SIZE_MAX);
// {inputs, outputs, states}, with the symbols of open sizes and the labels of a classifier.
nlohmann::ordered_json InterfaceJson(const Function& function);
// The interface of the default function and of all functions: {..., functions, default_function}.
nlohmann::ordered_json ProgramJson(const Program& program);

}  // namespace mlc::driver
