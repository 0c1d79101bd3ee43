// tools/driver/build_checks.h - checks a package against the requirements of its recipe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "tools/driver/build_record.h"
#include "tools/driver/compile.h"
#include "tools/driver/latency.h"
#include "tools/driver/recipe.h"

namespace mlc::driver {

// Tensors used to check the packages of a recipe.
struct CheckFiles {
  std::map<std::string, Tensor> inputs, reference;  // by port name
  Tensor labels;                                    // for check.accuracy
};
// Throws Errors, one for each file that is missing or cannot be read.
CheckFiles ReadCheckFiles(const Recipe& recipe);

// The inputs of the first run on the samples, by name. Error "bad-recipe".
std::map<std::string, Tensor> FirstInputs(const Function& function,
                                          const std::map<std::string, Tensor>& samples);

// Runs the package of a variant on the samples and compares the outputs. `built` has the figures of
// the package, `options` are those of its compilation. Error "bad-recipe" if the samples or the
// references do not fit the model; the errors of Model and of predictions.
std::vector<BuildCheck> CheckPackage(const Recipe& recipe, const Recipe::Variant& variant,
                                     const CheckFiles& files, const std::filesystem::path& package,
                                     const CompileOptions& options, const BuildRecord& built,
                                     runtime::Units units);

// Compares the time of a prediction on the first sample with the baseline of this machine, which is
// recorded if there is none. Returns one check and the figures.
BuildRecord CheckLatency(const Recipe::Variant& variant, const CheckFiles& files,
                         const std::filesystem::path& package, const BuildRecord& built,
                         LatencyMeter& meter);

}  // namespace mlc::driver
