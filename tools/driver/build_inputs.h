// tools/driver/build_inputs.h - everything that the variants of a recipe are made from, checked
// before anything is compiled.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tools/driver/build_folder.h"
#include "tools/driver/compile.h"
#include "tools/driver/recipe.h"
#include "tools/driver/source_hashes.h"

namespace mlc::driver {

// The files of a recipe, named by their role: "source m.onnx", "input x", "reference y", "labels".
// The files of a folder have several such names: "--calibrate samples/0.npy".
using RoleFiles = std::vector<std::pair<std::string, std::filesystem::path>>;

struct RecipeInputs {
  std::vector<SourceFile> source;
  RoleFiles checks;
};
// Compares the hash of the source with the recipe's, and requires all files of the checks. Files
// that `folder` knows are not read again. Throws Errors; "check-failed" for a wrong hash.
RecipeInputs CheckRecipe(const Recipe& recipe, BuildFolder& folder, Diagnostics& diagnostics);

// The same where packages are tested: the source is checked only if it is there.
RecipeInputs CheckRecipeOfTest(const Recipe& recipe, BuildFolder& folder, Diagnostics& diagnostics);

// The files that the import of a source reads, without hashes. Errors of the frontend.
std::vector<SourceFile> FilesOfSource(const std::filesystem::path& source,
                                      const std::filesystem::path& data_root,
                                      Diagnostics& diagnostics);

// The same files, without reading more than their names requires: the source has no hashes.
RecipeInputs FindInputs(const Recipe& recipe);

// Returns whether the name of a variant matches one of the glob patterns, or there are none.
bool IsWanted(const std::string& name, const std::vector<std::string>& patterns);

struct VariantInputs {
  CompileOptions options;
  RoleFiles files;  // that the options name
};
// Returns a variant's options as those of `mlc compile`, without the outputs, which the names
// determine, and the options of the source. `base` supplies what recipes do not set. Throws the
// errors of the variant; "usage" for invalid options, "file-io" for missing files.
VariantInputs CheckVariant(const Recipe& recipe, const Recipe::Variant& variant,
                           const CompileOptions& base);

}  // namespace mlc::driver
