// tools/driver/build.h - what a recipe describes: packages, compiled and checked.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/verify/compare.h"
#include "tools/driver/compile.h"
#include "tools/driver/recipe.h"
#include "tools/driver/source_hashes.h"

namespace mlc {

// What is read of a recipe's source, with hashes. Error "check-failed" when it is not what the
// recipe means.
std::vector<SourceFile> CheckSource(const Recipe& recipe, Diagnostics& diagnostics);

// The tensors that a recipe's packages are checked with.
struct CheckFiles {
  std::map<std::string, Tensor> inputs, reference;  // by port
  Tensor labels;                                    // of check.accuracy
};
// Throws Errors: of every file that is missing or cannot be read.
CheckFiles ReadCheckFiles(const Recipe& recipe);

struct BuildCheck {
  enum class Kind { kLimit, kReference, kAccuracy } kind;
  std::string what;  // the limit's name, or the output's
  bool ok = false;
  int64_t size = 0, most = 0;          // of a limit
  Comparison comparison = {};          // with a reference
  std::string budget = {}, note = {};  // likewise; the note is for people
  double accuracy = 0, expected = 0;
};
struct BuildResult {
  CompileResult compiled;
  std::filesystem::path bundle;  // empty: none was asked for
  int64_t package_bytes = 0;
  std::vector<BuildCheck> checks;
  bool ok() const;
};
// Makes NAME.mlpackage of a variant, and its bundle, checks it, and puts it into the current folder; where it
// throws, nothing was put there. `base`: what holds besides the recipe's options: `force` and what `passes`
// show. `source`: CheckSource's; `files`: ReadCheckFiles'.
BuildResult BuildVariant(const Recipe& recipe, const Recipe::Variant& variant,
                         const std::vector<SourceFile>& source, const CheckFiles& files,
                         const CompileOptions& base, Diagnostics& diagnostics);

}  // namespace mlc
