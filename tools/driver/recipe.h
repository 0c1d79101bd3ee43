// tools/driver/recipe.h - build recipes: JSON as manifests/recipe.schema.json says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

// Paths are as in the file: relative ones are taken from `folder`.
struct Recipe {
  std::filesystem::path file, folder;
  std::string name, source, sha256, data_root;

  struct Variant {
    std::string name;  // of the package: RECIPE-VARIANT
    std::vector<std::string> options;
    std::string budget;  // a name, or JSON for BudgetsFromJson; empty: that of its precision
    std::vector<std::pair<std::string, int64_t>> limits;  // "package_bytes", "operations"
    bool bundle = false;
    std::vector<Error> errors;  // why it cannot be built; then only the name is set
  };
  std::vector<Variant> variants;  // at least one; no two of one name

  std::map<std::string, std::string> inputs, reference;  // files by port
  struct Accuracy {
    std::string output, labels;
    double expected = 0, tolerance = 0;
  };
  std::optional<Accuracy> accuracy;
};

// Throws Errors "bad-recipe", one for each violation of the schema outside of the variants; what is
// wrong with a variant stands in it. Error "file-io".
Recipe ReadRecipe(const std::filesystem::path& path);

}  // namespace mlc
