// tools/driver/weights.h - reads and replaces the weights of a program by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::driver {

// A constant that is a tensor of the source model, has at least ten elements, or is a floating-point
// tensor of rank 1 or more.
struct NamedWeight {
  std::string name;
  std::string source;     // the tensor of the source that it is; empty: unknown, or none
  Operation* operation;   // the const; its `val` is the weight
  std::string why_fixed;  // why it cannot be replaced; empty: it can
};
// Returns the weights of all functions, in execution order. A weight can be replaced if it is not
// compressed and is a tensor of the source, perhaps rounded or reshaped, that stands for nothing
// else. A program that does not state the sources of its constants (coremltools, MIL text, the
// builder) counts as its own source.
std::vector<NamedWeight> WeightsOf(Program& program);
// Returns the first weight of this name, or else of this name in the source. Error "bad-name", with
// similar names; "bad-input" for a tensor of the source that other constants were computed from.
NamedWeight FindWeight(Program& program, const std::string& name);

// Replaces a weight, in all functions that have the same tensor of the source, or else one of this
// name with the same elements. The tensor has the shape of the weight; between floating-point types
// it is rounded. Error "bad-name" for an unknown name; "bad-input" for another shape or type, and
// for a weight that cannot be replaced.
void SetWeight(Program& program, const std::string& name, const Tensor& tensor);
// The same for a change of the weight itself, which may be computed from the source, but not
// compressed.
void ChangeWeight(Program& program, const std::string& name, const Tensor& tensor);

struct ExportWeightsOptions {
  std::vector<std::string> names;  // empty: all
  std::filesystem::path output;    // folder
};
struct ExportedWeight {
  std::string name, source;
  DType dtype;
  Dims dims;
  std::filesystem::path file;
  std::string why_fixed;  // why SetWeights refuses it; empty: it does not
};
// Writes the weights of a model of any format, decoded, to NAME.npy (percent-encoded) in a folder,
// which is created. Types that .npy lacks become fp32. Error "bad-name", "file-io", "file-exists"
// for files that exist.
std::vector<ExportedWeight> ExportWeights(const std::filesystem::path& model,
                                          const ExportWeightsOptions& options,
                                          Diagnostics& diagnostics);

struct SetWeightsOptions {
  // Folder of .npy files, named by ExportWeights, or in the same way after tensors of the source.
  std::filesystem::path weights;
  std::filesystem::path output;  // .mlpackage or .mil
  bool force = false;
};
// Replaces the weights of a package, bundle or MIL text, and writes the result; returns their
// names. Throws Errors, one for each file that SetWeight refuses; Error "usage" for a source model,
// or a folder without files.
std::vector<std::string> SetWeights(const std::filesystem::path& model,
                                    const SetWeightsOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
