// tools/driver/supplied_tensors.h - reads the tensors that users supply, from files and folders, by
// the names of a function's inputs, outputs and states, and converts results to the types of the
// source.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/ir/program.h"
#include "lib/media/picture.h"
#include "lib/verify/compare_functions.h"

namespace mlc::driver {

// Returns the inputs of a function by MIL name, in the types of its values: `given` by source or
// MIL name, the rest generated (lib/analysis/generated_inputs.h). `made` receives the ranges of
// generated inputs.
std::map<std::string, Tensor> MakeInputs(
    const Function& function, const std::map<std::string, Tensor>& given,
    const analysis::GeneratedInputOptions& options = {},
    std::map<std::string, analysis::InputRange>* made = nullptr);
// Converts a tensor to the type of an input. Error "bad-input".
Tensor ToInputType(const Tensor& given, const Value& input, const Port& port);
// Error "bad-input" if the package lists the shapes of the input, and this is not one of them.
void CheckListedShape(const Port& port, const Dims& dims);
// Error "usage" for a range that names no input of the program, or that the input's type cannot
// represent.
void CheckRanges(const analysis::GeneratedInputOptions& options, const Program& program);
// Returns the function of this name, or, if `only_is_fine`, the only function regardless of its
// name. Error "bad-name" lists the available ones.
const Function& FindFunction(const Program& program, const std::string& name,
                             bool only_is_fine = false);
// Returns the folder with the tensors of one function: the subfolder of its name if it exists and
// the program has `several` functions, otherwise the folder itself.
std::filesystem::path FunctionFolder(const std::filesystem::path& folder, const Function& function,
                                     bool several);
// Returns the subfolders 0, 1, ..., one for each step, or the folder itself if there are none.
// Error "bad-input" if a number is missing.
std::vector<std::filesystem::path> StepFolders(const std::filesystem::path& folder);
// Returns whether `name` is an input of the source that the function lacks, because its value is
// known or it is unused. Error "bad-input" if `given` differs from the known value.
bool IsAbsent(const Function& function, std::string_view name, const Tensor& given);

// Reads the files of a folder (input_files.h) or the arrays of an .npz as inputs of this function, by
// name: NAME, in_NAME (percent-encoded, or with every character other than letters, digits and
// '_' '-' '.' replaced by '_'), or input_<k> by position. Error "bad-input" if one matches no input.
std::map<std::string, Tensor> ReadInputFolder(const Function& function,
                                              const std::filesystem::path& folder,
                                              media::Fit fit = media::Fit::kNone);
// Reads one or more samples: the StepFolders() of the FunctionFolder() of a folder, each as
// ReadInputFolder(). If the function has one input, and the folder only pictures or sounds of which
// none has its name, each file is a sample, in the order of their names.
std::vector<std::map<std::string, Tensor>> ReadSamples(const Function& function,
                                                       const std::filesystem::path& folder,
                                                       bool several,
                                                       media::Fit fit = media::Fit::kNone);
// Reads the reference outputs of each step, from StepFolders() of a folder (NAME, out_<k>_NAME,
// output_<k>, and states/NAME for states), or of one step from an .npz (by name or in output
// order). A NAME is the source's or the package's. Returns all outputs and states of the function
// in order, with an empty Tensor for missing ones.
std::vector<verify::StepResults> ReadReferences(const Function& function, const Function& package,
                                                const std::filesystem::path& path);

// Returns the values of the function's input ports, in order; body.inputs includes states.
std::vector<const Value*> InputValues(const Function& function);
// Returns the input ports with their values, in order.
struct InputPort {
  const Port& port;
  const Value& value;
};
std::vector<InputPort> InputPorts(const Function& function);

// Converts a result to the dtype (bool, int64, double ...) and shape that the source declares;
// scalars remain scalars.
Tensor ToSourceType(const Tensor& tensor, const Port& port);

}  // namespace mlc::driver
