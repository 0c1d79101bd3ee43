// tools/driver/operators.h - what the frontends lower, and of an ONNX model which operators, and what is refused.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"

namespace mlc {

struct ModelOperators {
  struct Row {
    std::string name;  // "domain::Name" outside ai.onnx
    int64_t nodes = 0;
    std::optional<OnnxOperator> known;  // in the model's opset; absent: not supported
  };
  std::vector<Row> rows;      // by name
  std::vector<Error> errors;  // of an import
};
ModelOperators CheckOperators(const std::filesystem::path& model, const ImportOptions& options,
                              Diagnostics& diagnostics);

// Operators with their versions: one row each, or several where class or condition differ.
Listing ListOnnxOperators();
// The architectures that a frontend supports, by its names for them.
Listing ListArchitectures(std::string_view title, const std::set<std::string>& decoders,
                          const std::set<std::string>& encoders);

}  // namespace mlc
