// backends/coreml/write_package.h - writes a Program as a .mlpackage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lib/ir/program.h"
#include "lib/support/mapped_file.h"
#include "lib/support/progress.h"

namespace mlc::coreml {

struct PackageOptions {
  // Never raised automatically: Error "target-too-old" names what needs a newer one; see
  // LowestTarget (lower.h).
  Opset target = Opset::kIos16;
  int threads = 0;  // 0: one per processor
  // Replace anything that exists at the path, even if the file system cannot do so atomically.
  bool force = false;
  // Called for source bytes while they are in the page cache (WeightPlan::PassedFn).
  std::function<void(const MappedFile& file, uint64_t end)> passed = {};
  Progress progress = {};  // of writing the weights
};

struct PackageResult {
  Opset target = Opset::kIos16;
  std::map<std::string, int64_t>
      operators;               // number of written operations by type, without constants
  uint64_t weight_bytes = 0;   // size of the weight file; 0 if there is none
  uint64_t program_bytes = 0;  // size of model.mlmodel
  std::string
      content_hash;  // 32 hex digits: XXH3-128 over the sorted relative paths and the contents
};

// Writes the package next to `path` and moves it there once it is complete and synced to disk. The
// bytes depend only on the program and the target. The program must be in the forms of the target
// (the pass newer-forms). Further errors: "too-large", "unsupported-dtype", "constant-range",
// "file-io", "file-exists"; if the target lacks several operations, one Errors holds an error for
// each.
PackageResult WritePackage(const Program& program, const std::filesystem::path& path,
                           const PackageOptions& options, Diagnostics& diagnostics);

// Checks for obstacles to WritePackage: Error "overwrites-input", "file-io", or "file-exists" if
// the path holds anything except an empty folder or an unmodified package of mlc, unless `force`.
void CheckPackageTarget(const std::filesystem::path& path, bool force);

}  // namespace mlc::coreml
