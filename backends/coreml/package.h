// backends/coreml/package.h - writes a Program as a .mlpackage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lib/ir/program.h"

namespace mlc {

struct PackageOptions {
  // Never raised: Error "target-too-old" names what needs more. LowestTarget (lower.h) tells.
  Opset target = Opset::kIos16;
  int threads = 0;     // 0: one per processor
  bool force = false;  // replace what is there, whatever it is and on any file system
  // Hears of source bytes while they are in the cache (WeightPlan::PassedFn).
  std::function<void(const MappedFile& file, uint64_t end)> passed = {};
};

struct PackageResult {
  Opset target = Opset::kIos16;
  std::map<std::string, int64_t> operators;  // how many of each were written, constants aside
  uint64_t weight_bytes = 0;                 // of the weight file; 0: there is none
  uint64_t program_bytes = 0;                // of model.mlmodel
  std::string content_hash;  // 32 hex digits: XXH3-128 over the sorted relative paths and bytes
};

// Writes the package beside `path` and moves it there when it is whole and on disk. The bytes
// depend on the program and the target alone; the program is in the target's forms (the pass
// newer-forms). Besides the errors above: "too-large", "unsupported-dtype", "constant-range",
// "file-io", "file-exists"; several operations that a target lacks are thrown together as Errors.
PackageResult WritePackage(const Program& program, const std::filesystem::path& path,
                           const PackageOptions& options, Diagnostics& diagnostics);

// What WritePackage will find in its way: Error "overwrites-input", "file-io", or "file-exists" for
// anything but a package that mlc made, with nothing else in it, or an empty folder, unless
// `force`.
void CheckPackageTarget(const std::filesystem::path& path, bool force);

}  // namespace mlc
