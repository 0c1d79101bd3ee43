// tools/driver/inspect.h - describes a model of any format.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
// Returns the metadata that is present: author and so on.
std::vector<std::pair<std::string, std::string>> Texts(const Interface& interface);
// Returns bits per weight, 0 if there are no weights.
double BitsOf(uint64_t bytes, int64_t elements);

}  // namespace mlc::driver
