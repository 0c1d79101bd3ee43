// tools/driver/write_recipe.h - writes a recipe for a model, and updates the hash in a recipe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

// Writes FOLDER/NAME.json, with the variants fp16 and fp32, and the samples FOLDER/NAME-check/: generated
// inputs, and the outputs that mlc's import of the source computes for them. NAME is derived from
// the name of the model. Returns the path of the recipe. Error "file-exists" if it exists, and those
// of Run.
std::filesystem::path InitRecipe(const std::filesystem::path& model,
                                 const std::filesystem::path& folder, Diagnostics& diagnostics);

struct UpdatedRecipe {
  std::string path, before, after;  // the hashes of the source
};
// Replaces the hash of the source by that of the files as they are. The rest of the text stays as
// it is. Throws the errors of ReadRecipe.
UpdatedRecipe UpdateRecipe(const std::string& path);

}  // namespace mlc::driver
