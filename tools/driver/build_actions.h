// tools/driver/build_actions.h - the actions that build a variant: each is a function of its key,
// and its result can come from a cache.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cache/action_record.h"
#include "lib/verify/compare_functions.h"
#include "tools/driver/build_inputs.h"
#include "tools/driver/latency.h"

namespace mlc::driver {

// One variant, with everything that it is built from.
struct VariantBuild {
  const Recipe& recipe;
  const Recipe::Variant& variant;
  const RecipeInputs& inputs;
  const VariantInputs& options;
  LatencyMeter& latency;
};

// The results of earlier actions that an action reads: the package, and the facts so far.
struct BuildStep {
  std::filesystem::path package;                 // where it is now
  std::vector<cache::ActionRecord::File> files;  // its files, named as in the output folder
  BuildRecord record;
};

// A row of the table. The results of an action are files and folders that are installed in the
// output folder, and facts: members of BuildRecord as JSON.
struct BuildAction {
  std::string_view name;  // "package"
  bool (*wanted)(const VariantBuild& build);
  // Adds what the result depends on, besides the action's name and this build of mlc.
  void (*depend)(const VariantBuild& build, const BuildStep& before, BuildFolder& folder,
                 cache::CacheKey& key);
  // Creates the results in the empty folder `into`; returns the facts. If one of its checks is not
  // ok, the result is neither cached nor installed; if one is not judged, the action is not up to
  // date afterwards.
  BuildRecord (*make)(const VariantBuild& build, const BuildStep& before,
                      const std::filesystem::path& into, Diagnostics& diagnostics);
  // The result is valid on this machine only: it is not shared, and nothing else runs meanwhile.
  bool of_machine = false;
};
// In the order in which they run; the first makes the package.
const std::vector<BuildAction>& BuildActions();

// The key of an action.
cache::CacheKey KeyOf(const BuildAction& action, const VariantBuild& build, const BuildStep& before,
                      BuildFolder& folder);

// The comparisons of a verification; all fail if it did.
std::vector<BuildCheck> ParityChecks(const std::vector<verify::Compared>& outputs,
                                     const std::string& budget, const std::string& note);
// The total size of the files below a folder.
int64_t FolderBytes(const std::filesystem::path& folder);

// The options as words of a POSIX shell.
std::string JoinedOptions(const std::vector<std::string>& options);

// The file with the facts in the cached result of an action.
inline constexpr std::string_view kFactsFile = "facts.json";

}  // namespace mlc::driver
