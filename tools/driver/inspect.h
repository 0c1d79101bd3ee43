// tools/driver/inspect.h - describes a model of any format.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/analysis/weight_bytes.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/precompile.h"

namespace mlc::driver {

struct InspectOptions {
  ImportOptions import;
  bool text = false;        // print the program as MIL text
  BundleVersions versions;  // versions named in that text
};

struct InspectResult {
  const Frontend* frontend;
  std::shared_ptr<const Program> program;
  Opset needed;  // maximum over all functions, because a package is loaded as a whole
  // For Core ML formats as Core ML's compiler writes it, for source models a short form.
  std::string text;
  std::vector<analysis::Weight> weights;
  int64_t weight_elements = 0;
  uint64_t weight_bytes = 0;
  std::map<std::string, uint64_t> weight_bytes_by_dtype;  // by storage type of the parts
  std::map<std::string, int64_t> operators;  // counts over all functions, without constants
  double fp16_share = 0;                     // share of the floating-point work
};
InspectResult Inspect(const std::filesystem::path& model, const InspectOptions& options,
                      Diagnostics& diagnostics);
std::map<std::string, int64_t> OperatorsOf(Function& function);

}  // namespace mlc::driver
