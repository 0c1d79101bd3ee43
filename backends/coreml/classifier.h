// backends/coreml/classifier.h - models that predict a class label.
//
// Core ML represents a classifier by an operation `classify` at the end of the program. From a
// tensor of probabilities and the class labels, it computes the most likely label and a dictionary
// from labels to probabilities. Both replace the tensor as outputs of the model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::coreml {

// Reads one label per line, in class order. Surrounding blanks, trailing empty lines and a byte
// order mark are ignored. Error "bad-file" for no labels, a duplicate label, an empty label between
// others, or text that is not UTF-8.
std::vector<std::string> ReadLabels(const std::filesystem::path& path);

// Replaces the only float output with as many elements as there are labels. The new outputs,
// "classLabel" and "classLabel_probs", come first; the port of the second has the source name of
// the tensor. Adds a note if the elements are not probabilities. Error "bad-operand" if no output
// fits, or several do.
void MakeClassifier(Program& program, const std::vector<std::string>& labels,
                    Diagnostics& diagnostics);

// Returns the operation that shows that the elements are not probabilities, because it does not
// produce or preserve numbers from 0 to 1; null if they may be probabilities.
const Operation* MakesLogits(const Value* value);
// Returns whether all elements are certain to be from 0 to 1.
bool AreShares(const Value& value);

// Returns the operation `classify` whose results are outputs of the function; null if there is
// none.
const Operation* FindClassifier(const Function& function);

}  // namespace mlc::coreml
