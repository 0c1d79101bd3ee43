// tools/driver/recipe.h - build recipes: JSON files described by manifests/recipe.schema.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

// Paths are unchanged; relative ones are relative to `folder`.
struct Recipe {
  std::filesystem::path file, folder;
  std::string name, source, sha256, data_root;

  struct Variant {
    std::string name;  // the package is named RECIPE-VARIANT
    std::vector<std::string> options;
    std::string budget;  // a name, or JSON for BudgetsFromJson; empty: by the variant's precision
    std::vector<std::pair<std::string, double>> limits;  // the rows of kLimits (build_checks.cpp)
    std::optional<double> latency_increase_pct;          // a limit, too: see latency.h
    bool bundle = false, parity_bundle = false;
    std::vector<Error> errors;  // why it cannot be built; in this case only `name` is set
  };
  std::vector<Variant> variants;  // at least one, with unique names

  std::map<std::string, std::string> inputs, reference;  // file names by port
  struct Accuracy {
    std::string output, labels;
    double expected = 0, tolerance = 0;
  };
  std::optional<Accuracy> accuracy;
};

// Throws Error "bad-recipe" if the recipe requires another version of mlc, and Errors "bad-recipe",
// one for each violation of the schema outside of the variants;
// violations in a variant are stored in its `errors`. Error "file-io".
Recipe ReadRecipe(const std::filesystem::path& path);

}  // namespace mlc::driver
