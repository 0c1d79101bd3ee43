// tools/driver/weights.h - reads and replaces the weights of a program by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::driver {

// A constant of at least kLeastWeight elements.
inline constexpr int64_t kLeastWeight = 10;
struct NamedWeight {
  std::string name;
  Operation* operation;   // the const; its `val` is the weight
  std::string why_fixed;  // why it cannot be replaced; empty: it can
};
// Returns the weights of all functions, in execution order.
std::vector<NamedWeight> WeightsOf(Program& program);
// Returns the first weight of this name. Error "bad-name", with similar names.
NamedWeight FindWeight(Program& program, const std::string& name);

// Replaces a weight, in all functions that have one of this name with the same elements. The tensor
// has the shape of the weight; between floating-point types it is rounded. Error "bad-name" for an
// unknown name; "bad-input" for another shape or type, and for a weight that cannot be replaced.
void SetWeight(Program& program, const std::string& name, const Tensor& tensor);

struct ExportWeightsOptions {
  std::vector<std::string> names;  // empty: all
  std::filesystem::path output;    // folder
};
struct ExportedWeight {
  std::string name;
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
  std::filesystem::path weights;  // folder of .npy files, named by ExportWeights
  std::filesystem::path output;   // .mlpackage or .mil
  bool force = false;
};
// Replaces the weights of a package, bundle or MIL text, and writes the result; returns their
// names. Throws Errors, one for each file that SetWeight refuses; Error "usage" for a source model,
// or a folder without files.
std::vector<std::string> SetWeights(const std::filesystem::path& model,
                                    const SetWeightsOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
