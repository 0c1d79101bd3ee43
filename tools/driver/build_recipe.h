// tools/driver/build_recipe.h - builds and checks the packages that a recipe describes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/verify/compare.h"
#include "tools/driver/compile.h"
#include "tools/driver/recipe.h"
#include "tools/driver/source_hashes.h"

namespace mlc::driver {

// Checks the source files of a recipe and returns them with their hashes. Error "check-failed" when
// a hash differs from the recipe's.
std::vector<SourceFile> CheckSource(const Recipe& recipe, Diagnostics& diagnostics);

// Tensors used to check the packages of a recipe.
struct CheckFiles {
  std::map<std::string, Tensor> inputs, reference;  // by port name
  Tensor labels;                                    // for check.accuracy
};
// Throws Errors, one for each file that is missing or cannot be read.
CheckFiles ReadCheckFiles(const Recipe& recipe);

struct BuildCheck {
  enum class Kind { kLimit, kReference, kAccuracy } kind;
  std::string what;  // name of the limit or the output
  bool ok = false;
  int64_t size = 0, most = 0;          // for kLimit
  verify::Comparison comparison = {};  // for kReference
  std::string budget = {}, note = {};  // for kReference; the note is for display only
  double accuracy = 0, expected = 0;
};
struct BuildResult {
  CompileResult compiled;
  std::filesystem::path bundle;  // empty: not requested
  int64_t package_bytes = 0;
  std::vector<BuildCheck> checks;
  bool ok() const;
};
// Builds NAME.mlpackage for a variant, and its bundle if requested, checks them and moves them to
// the current folder. Nothing is written there if this throws. `base` supplies the options that
// recipes do not set: `force` and the reporting options of `passes`. `source` comes from
// CheckSource, `files` from ReadCheckFiles.
BuildResult BuildVariant(const Recipe& recipe, const Recipe::Variant& variant,
                         const std::vector<SourceFile>& source, const CheckFiles& files,
                         const CompileOptions& base, Diagnostics& diagnostics);

}  // namespace mlc::driver
