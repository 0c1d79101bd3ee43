// tools/mlc/interface.h - what an app meets of a function, as commands show it: names, types,
// sizes, labels. The name that an app must use comes first; tools accept the source's too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// The name in the package, and where the source has another: input_1 (from "input.1").
std::string ShownName(const Port& port);

// The labels of a classifier, in the order of its classes; none of what is no classifier.
std::vector<std::string> ClassLabels(const Function& function);

// The symbols of a function's inputs, each once.
std::vector<std::string> OpenSymbols(const Function& function);
// "n in 1..4096" or "n in 8|16"; "" of a number.
std::string SizesText(const Function& function, const Dim& dim);
// "[1, 2], [3, 4]": the shapes that a package lists for an input.
std::string ShapesText(const Port& port);
// "n in 1..4096, m in 8|16": the open sizes of all inputs, "" where all are fixed.
std::string OpenSizesText(const Function& function);

// Lines with the inputs, outputs, states and labels, each kind up to `most`.
std::string InterfaceText(const Function& function, size_t most = SIZE_MAX);
// {inputs, outputs, states}, the symbols of open sizes, labels of a classifier.
nlohmann::ordered_json InterfaceJson(const Function& function);

}  // namespace mlc
