// tools/driver/tensors.h - the tensors that users give and get: files and folders of them, by the
// names of a function's inputs, outputs and states, in the types of the source or of the program.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/ir/program.h"
#include "lib/verify/functions.h"

namespace mlc {

// A tensor from .npy, .pb (onnx.TensorProto) or a picture (.ppm, .pgm).
Tensor ReadTensor(const std::filesystem::path& path);

// Inputs of a function by MIL name, in the types of its values: files given as NAME=FILE (source or
// MIL name), the rest made up (lib/analysis/generated_inputs.h); `made` receives the ranges of those.
std::map<std::string, Tensor> MakeInputs(const Function& function,
                                         const std::map<std::string, Tensor>& given,
                                         const GeneratedInputOptions& options = {},
                                         std::map<std::string, InputRange>* made = nullptr);
// Error "usage" for a range of no input of the program, or of values that the input cannot have.
void CheckRanges(const GeneratedInputOptions& options, const Program& program);
// The function of this name; the only one whatever its name, where that is `fine`. Error "bad-name"
// lists those that there are.
const Function& FindFunction(const Program& program, const std::string& name,
                             bool only_is_fine = false);
// Where a folder of tensors has those of one function: in a folder of its name, where the program
// has `several` functions and the folder is there, else in the folder itself.
std::filesystem::path FunctionFolder(const std::filesystem::path& folder, const Function& function,
                                     bool several);
// The folders 0, 1, ... in it, one for each step; itself where there are none. Error "bad-input" where
// one is left out.
std::vector<std::filesystem::path> StepFolders(const std::filesystem::path& folder);
// Whether `name` is an input of the source that the function has not, as its value is known or
// nothing needs it. Error "bad-input" when `given` is another value.
bool IsAbsent(const Function& function, std::string_view name, const Tensor& given);

// Every tensor of a folder as inputs of this function, by file name: NAME, in_NAME (percent-encoded
// or with every other character than letters, digits and '_' '-' '.' replaced by '_'), or input_<k>
// by position. Error "bad-input" when a file fits no input.
std::map<std::string, Tensor> ReadInputFolder(const Function& function,
                                              const std::filesystem::path& folder);
// Reference outputs of each step, from StepFolders() of a folder (NAME, out_<k>_NAME, output_<k>,
// and states/NAME for states), or of one step from an .npz (names or output order). A NAME is the
// source's, or that of its package. All outputs and states of the function in their order; an empty
// Tensor for what is not there.
std::vector<StepResults> ReadReferences(const Function& function, const Function& package,
                                        const std::filesystem::path& path);

// The values that the function's input ports describe, in their order; body.inputs has states too.
std::vector<const Value*> InputValues(const Function& function);

// A result as the source declared it: dtype (bool, int64, double ...) and shape (a scalar stays
// one).
Tensor ToSourceType(const Tensor& tensor, const Port& port);

}  // namespace mlc
