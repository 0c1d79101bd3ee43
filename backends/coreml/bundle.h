// backends/coreml/bundle.h - writes what Core ML's compiler makes of a package: a .mlmodelc.
//
// Experimental: the layout is private to Core ML and can be checked on a Mac only.
#pragma once

#include <filesystem>
#include <string>

#include "lib/ir/program.h"

namespace mlc {

struct BundleOptions {
  std::string class_name;        // as Xcode would call the model; usually the package's stem
  std::string compiler_version;  // of the compiler that the bundle names; empty: BundleText's
  std::string mil_version;
  bool force = false;         // replace what is there, whatever it is and on any file system
  bool take_weights = false;  // move the weight files rather than copy them
};

// Writes the bundle of a program that was read from the files in `model_folder` beside `path` and
// moves it there when it is whole and on disk. Error "file-io", "file-exists",
// "bad-file" when weights are absent.
void WriteBundle(const Program& program, const std::filesystem::path& model_folder,
                 const std::filesystem::path& path, const BundleOptions& options,
                 Diagnostics& diagnostics);

// What WriteBundle will find in its way: as CheckPackageTarget, of bundles.
void CheckBundleTarget(const std::filesystem::path& path, bool force);

// The specification of the file that the program was read from, or what its functions need.
Opset SpecificationOf(const Program& program);
// coremldata.bin and metadata.json of such a program.
std::string BundleDataOf(const Program& program, Diagnostics& diagnostics);
std::string BundleMetadata(const Program& program, const std::string& class_name);

}  // namespace mlc
