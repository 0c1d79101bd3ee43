// frontends/coreml/import.h - reads what Core ML stores, whoever wrote it: packages, compiled
// bundles, bare model files and MIL text.
#pragma once

#include <filesystem>

#include "lib/ir/program.h"

namespace mlc {

enum class CoremlFormat {
  kNone,
  kPackage,  // .mlpackage: a folder with a Manifest.json
  kBundle,   // .mlmodelc: a folder with a coremldata.bin
  kModel,    // .mlmodel: the protobuf alone
  kText,     // MIL text
};
// By content; kNone for all else, and where nothing is.
CoremlFormat DetectCoreml(const std::filesystem::path& path);

// The model file of a package. Error "file-io", "bad-file".
std::filesystem::path CoremlModelPath(const std::filesystem::path& package);

// The program of any of them. Operations remember the form they were read in; weights stay slices
// of the mapped file; everything the file says about inputs, outputs, states and metadata is in
// ports and interface. A bare model or text may lack its weights, which are sought beside it:
// constants are Tensor::Absent then. Errors, located: "file-io", "bad-file" for damage of any kind,
// "bad-graph", "bad-text", "unsupported-field" for what is newer or no ML Program,
// "unsupported-operator", "unsupported-attribute", and what inference throws.
Program ImportCoreml(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc
