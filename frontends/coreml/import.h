// frontends/coreml/import.h - reads a .mlpackage back from its bytes, whoever wrote it.
#pragma once

#include <filesystem>

#include "lib/ir/program.h"

namespace mlc {

// Whether the path looks like a package: a folder with a Manifest.json.
bool IsCoremlPackage(const std::filesystem::path& path);

// The program of a package. Operations remember the form they were read in; weights stay slices of
// the mapped file; everything the file says about inputs, outputs, states and metadata is in ports
// and interface. Errors, located: "file-io", "bad-file" for damage of any kind, "bad-graph",
// "unsupported-field", "unsupported-operator", "unsupported-attribute", and what inference throws.
Program ImportCoreml(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc
