// tools/driver/interface.h - what an app meets of a function: open sizes and labels.
#pragma once

#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

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

}  // namespace mlc
