// backends/coreml/write_mlmodelc.h - writes a .mlmodelc, the output of Core ML's compiler for a
// package.
//
// Experimental: the layout is private to Core ML and can only be verified on a Mac.
#pragma once

#include <filesystem>
#include <string>

#include "lib/ir/program.h"

namespace mlc::coreml {

struct BundleOptions {
  std::string class_name;        // the model's class name in Xcode; usually the stem of the package
  std::string compiler_version;  // compiler version recorded in the bundle; empty for BundleText's
  std::string mil_version;
  // Replace anything that exists at the path, even if the file system cannot do so atomically.
  bool force = false;
  bool take_weights = false;  // move the weight files instead of copying them
};

// Writes the bundle of a program that was read from the files in `model_folder`. The bundle is
// written next to `path` and moved there once it is complete and synced to disk. Error "file-io",
// "file-exists"; "bad-file" if weights are missing.
void WriteBundle(const Program& program, const std::filesystem::path& model_folder,
                 const std::filesystem::path& path, const BundleOptions& options,
                 Diagnostics& diagnostics);

// Checks for obstacles to WriteBundle, like CheckPackageTarget.
void CheckBundleTarget(const std::filesystem::path& path, bool force);

// Returns the specification version of the file that the program was read from, or else the one
// that its functions need.
Opset SpecificationOf(const Program& program);
// Returns coremldata.bin and metadata.json of such a program.
std::string BundleDataOf(const Program& program, Diagnostics& diagnostics);
std::string BundleMetadata(const Program& program, const std::string& class_name);

}  // namespace mlc::coreml
