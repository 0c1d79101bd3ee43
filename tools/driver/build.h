// tools/driver/build.h - builds all variants of recipes, in parallel and only what is not up to date.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/build_cache.h"
#include "tools/driver/build_record.h"
#include "tools/driver/compile.h"
#include "tools/driver/latency.h"

namespace mlc::driver {

struct BuildOptions {
  std::filesystem::path output = ".";
  std::vector<std::string> only;         // glob patterns of RECIPE-VARIANT; empty: all
  int jobs = 1;                          // variants that are built at the same time
  std::chrono::milliseconds timeout{0};  // of a variant; 0: none
  // The memory that all processes together may use; 0: four fifths of the machine's, within the
  // limits of the container. A variant starts when the memory that it will need is free; its
  // estimate is what it took the last time.
  uint64_t memory_limit = 0;
  CacheOptions cache;
  LatencyOptions latency;  // `baselines` is "baselines" in `output` if it is empty
  bool dry_run = false;    // only find out what is up to date
  // Build nothing, and check the packages that are in `output` (build_test.h).
  bool test = false;
  CompileOptions base;  // what recipes do not set: `force` and the output of passes
};

// The memory limit in bytes.
uint64_t MemoryLimitOf(const BuildOptions& options);
// An estimate of the memory that building a variant takes, for a source of this size: the source,
// its constants as they are compiled, and the package in the engine.
constexpr uint64_t MemoryForSource(uint64_t bytes) { return 3 * bytes; }

struct BuildReport {
  struct Recipe {
    std::string path;
    std::vector<Error> errors;  // of the recipe as a whole; then all its variants are not built
    std::vector<BuildRecord> variants;
  };
  std::vector<Recipe> recipes;
  std::vector<Error> warnings;  // of the build as a whole
  bool dry_run = false;
  double seconds = 0;

  int exit_code() const;  // the worst
  int Count(BuildRecord::Status status) const;
};
// {ok, recipes: [{recipe, variants: [BuildRecordJson ...], errors}], counts, errors, ...}
nlohmann::ordered_json BuildReportJson(const BuildReport& report);

// Messages with the same text, of any variants and locations.
struct MessageGroup {
  Error first;  // with the number of others as a note
  std::vector<std::string> variants;
};
std::vector<MessageGroup> GroupErrors(const BuildReport& report);
// The warnings of what was built now.
std::vector<MessageGroup> GroupWarnings(const BuildReport& report);

// The arguments of this program, without its name, that build one variant and print the record as
// JSON. `cache`: whether the cache can be used.
using VariantCommand = std::function<std::vector<std::string>(
    const std::string& recipe, const std::string& variant, bool cache)>;

// Returns the recipes that the arguments stand for: files, and folders of *.json files, except for
// schemas and manifests. Error "file-io", "usage" for a folder without recipes.
std::vector<std::string> FindRecipes(const std::vector<std::string>& paths);

// Checks all recipes before anything is compiled, then builds each variant in a process of its own.
// `done` is called from one thread at a time, for each variant when it is ready. Errors of recipes
// and variants are in the report. Error "usage".
BuildReport Build(const std::vector<std::string>& recipes, const BuildOptions& options,
                  const VariantCommand& command,
                  const std::function<void(const BuildRecord&)>& done);

// Builds one variant in this process.
BuildRecord BuildOne(const std::string& recipe, const std::string& variant,
                     const BuildOptions& options);

}  // namespace mlc::driver
