// tools/mlc/interface.h - what an app meets of a function, as commands show it: names, types,
// sizes, labels. The name that an app must use comes first; tools accept the source's too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/driver/interface.h"

namespace mlc {

// The name in the package, and where the source has another: input_1 (from "input.1").
std::string ShownName(const Port& port);

// Lines with the inputs, outputs, states and labels, each kind up to `most`.
std::string InterfaceText(const Function& function, size_t most = SIZE_MAX);
// {inputs, outputs, states}, the symbols of open sizes, labels of a classifier.
nlohmann::ordered_json InterfaceJson(const Function& function);
// That of the default function, and all functions: {..., functions, default_function}.
nlohmann::ordered_json ProgramJson(const Program& program);

}  // namespace mlc
