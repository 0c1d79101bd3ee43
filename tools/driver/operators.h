// tools/driver/operators.h - the operators of an ONNX model: which of them the frontend lowers (OnnxOperators lists all), and
// what it refuses.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace mlc
