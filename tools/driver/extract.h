// tools/driver/extract.h - cuts a part out of a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

struct ExtractOptions {
  // Names of values, or of ports in the source of a package.
  std::vector<std::string> inputs;  // empty: the part begins at the inputs of the model
  std::vector<std::string> outputs;
  std::string function;             // empty: the default one
  std::filesystem::path data_root;  // as in ImportOptions
  std::filesystem::path output;     // .onnx for an ONNX model, else .mlpackage or .mil
  bool force = false;               // replace what exists at `output`
};

struct ExtractResult {
  std::vector<std::string> inputs, outputs;  // of the part
  int64_t operations_before = 0, operations = 0;
};

// Writes the part with its weights. Errors of ReadEditable, CheckPart, WritePackage; "bad-name" for
// an unknown function; "bad-operand" if the part is not valid by itself, because an operand that
// has to be constant became an input.
ExtractResult Extract(const std::filesystem::path& model, const ExtractOptions& options,
                      Diagnostics& diagnostics);

}  // namespace mlc::driver
