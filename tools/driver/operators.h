// tools/driver/operators.h - lists the operators that the frontends support, and those of an ONNX
// model.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"

namespace mlc::driver {

struct ModelOperators {
  struct Row {
    std::string name;  // "domain::Name" outside ai.onnx
    int64_t nodes = 0;
    std::optional<onnx::OnnxOperator> known;  // support in the model's opset; absent: not supported
  };
  std::vector<Row> rows;      // sorted by name
  std::vector<Error> errors;  // errors of importing the model
};
ModelOperators CheckOperators(const std::filesystem::path& model, const ImportOptions& options,
                              Diagnostics& diagnostics);

// Lists the supported operators with their versions; an operator has several rows if the class or
// the condition differs between versions.
Listing ListOnnxOperators();
// The names of all operators that the table knows, as "onnx.Relu" or "com.microsoft.Inverse", with
// the reason why one can never be imported; empty: it can.
std::map<std::string, std::string> OnnxOperatorNames();
// Lists the architectures that a frontend supports, by its names for them.
Listing ListArchitectures(std::string_view title,
                          const std::map<std::string, std::set<std::string>>& networks);

}  // namespace mlc::driver
