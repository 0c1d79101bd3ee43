// tools/driver/inspect.h - what is in a model of any format.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/analysis/weights.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/precompile.h"

namespace mlc {

struct InspectOptions {
  ImportOptions import;
  bool text = false;        // the program as MIL text
  BundleVersions versions;  // that this text names
};

struct InspectResult {
  const Frontend* frontend;
  std::shared_ptr<const Program> program;
  Opset needed;      // of every function: a package is loaded as a whole
  std::string text;  // of a Core ML format what its compiler writes, of a source model a short form
  std::vector<Weight> weights;
  int64_t weight_elements = 0;
  uint64_t weight_bytes = 0;
  std::map<std::string, uint64_t> weight_bytes_by_dtype;  // of the parts, as they are held
  std::map<std::string, int64_t> operators;               // of all functions, but constants
  double fp16_share = 0;                                  // of the work on floats
};
InspectResult Inspect(const std::filesystem::path& model, const InspectOptions& options,
                      Diagnostics& diagnostics);
std::map<std::string, int64_t> OperatorsOf(Function& function);

}  // namespace mlc
