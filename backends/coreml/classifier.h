// backends/coreml/classifier.h - models that name a class.
//
// Core ML marks them by an operation `classify` at the end of the program: of a tensor of
// probabilities and the class labels it makes the label of the greatest, and a dictionary from
// labels to probabilities. Both are outputs of the model in place of the tensor.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// One label a line, in the order of the classes; surrounding blanks and empty lines at the end are
// not part of it, nor is a byte order mark. Error "bad-file": none, a label twice, an empty one
// between others, or text that is not UTF-8.
std::vector<std::string> ReadLabels(const std::filesystem::path& path);

// Replaces the only float output of as many elements as there are labels. The new outputs are the
// function's first, "classLabel" and "classLabel_probs"; the port of the second has the source name
// of the tensor. A note where its elements are no probabilities. Error "bad-operand" where no
// output or more than one fits.
void MakeClassifier(Program& program, const std::vector<std::string>& labels,
                    Diagnostics& diagnostics);

// What shows that the elements are no probabilities: the operation that makes them is none that
// gives numbers from 0 to 1, nor one that keeps those. Null where it may be that they are.
const Operation* MakesLogits(const Value* value);
// Whether it is certain that all elements are from 0 to 1.
bool AreShares(const Value& value);

// The operation `classify` whose results are outputs of the function; null when there is none.
const Operation* FindClassifier(const Function& function);

}  // namespace mlc
