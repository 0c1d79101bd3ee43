// tools/driver/model_interface.h - properties of a function's interface: open sizes and labels.
#pragma once

#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::driver {

// Returns the values of the function's states, in order.
std::vector<const Value*> StateValues(const Function& function);
// "fp32", also for a state; "dict" for the probabilities of a classifier.
std::string TypeText(const Type& type);
// Returns the labels of a classifier in the order of its classes, empty for other functions.
std::vector<std::string> ClassLabels(const Function& function);

// Makes the program a classifier with these labels (backends/coreml/classifier.h).
void SetClassLabels(Program& program, const std::vector<std::string>& labels,
                    Diagnostics& diagnostics);

// Returns the name of an input in the source, by its name in the program.
std::string InputNameOf(const Function& function, const std::string& name);

// "n in 1..4096" or "n in 8|16"; "" for a fixed size.
std::string SizesText(const Function& function, const Dim& dim);
// "[1, 2], [3, 4]": the enumerated shapes of an input.
std::string ShapesText(const Port& port);
// The sizes that an input of this shape may have: "n in 1..4096, m in 8|16", or "one of [1, 2], [3, 4]"
// if a package enumerates shapes; "" if all are fixed.
std::string AllowedSizesText(const Function& function, const Port& port, const Shape& shape);
// "n in 1..4096, m in 8|16": the open sizes of all inputs, "" if all are fixed.
std::string OpenSizesText(const Function& function);

}  // namespace mlc::driver
