// frontends/coreml/coreml.h - imports Core ML packages, compiled bundles, bare model files and MIL
// text.
#pragma once

#include <filesystem>

#include "lib/ir/program.h"

namespace mlc::coreml {

enum class CoremlFormat {
  kNone,
  kPackage,  // .mlpackage: a folder with a Manifest.json
  kBundle,   // .mlmodelc: a folder with a coremldata.bin
  kModel,    // .mlmodel: the protobuf alone
  kText,     // MIL text
};
// Detects the format by content. Returns kNone for any other file and for a missing path.
CoremlFormat DetectCoreml(const std::filesystem::path& path);

// Returns the path of the model file in a package. Throws "file-io" or "bad-file".
std::filesystem::path CoremlModelPath(const std::filesystem::path& package);

// Imports a model in any of these formats. Each operation keeps the form in which it was read,
// weights are slices of the mapped file, and the ports and the interface hold everything that the
// file says about inputs, outputs, states and metadata. The weights of a bare model file or a MIL
// text are looked up in its folder; constants whose weights are missing become Tensor::Absent.
// Throws located Errors: "file-io", "bad-file" for any kind of damage, "bad-graph", "bad-text",
// "unsupported-field" for newer formats and for models that are not ML Programs,
// "unsupported-operator", "unsupported-attribute", and the errors of type inference.
Program ImportCoreml(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc::coreml
