#include "tools/driver/build_inputs.h"

#include <fnmatch.h>

#include <algorithm>

#include "tools/driver/frontends.h"
#include "tools/driver/options.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// Adds a file, or the files below a folder.
void AddFiles(const std::string& role, const fs::path& path, RoleFiles& files) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error))
      throw Error("file-io", "{}: cannot read \"{}\": no such file or folder", role, path.string());
    files.emplace_back(role, path);
    return;
  }
  RoleFiles below;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
           path, fs::directory_options::follow_directory_symlink, error))
    if (entry.is_regular_file(error))
      below.emplace_back(role + "/" + entry.path().lexically_relative(path).generic_string(),
                         entry.path());
  if (error) throw Error("file-io", "cannot read \"{}\": {}", path.string(), error.message());
  std::ranges::sort(below);
  files.insert(files.end(), below.begin(), below.end());
}

struct SourcePaths {
  fs::path source, data_root;
};
SourcePaths PathsOf(const Recipe& recipe) {
  return {recipe.folder / recipe.source,
          recipe.data_root.empty() ? fs::path() : recipe.folder / recipe.data_root};
}

// The files that an import reads; error "unreadable" is set if that is unknown.
std::vector<SourceFile> FilesOf(const SourcePaths& paths, Diagnostics& diagnostics,
                                std::optional<Error>& unreadable) {
  SourceFacts facts;
  try {
    const Frontend& frontend = FrontendOf(paths.source);
    if (frontend.facts) facts = frontend.facts(paths.source, paths.data_root);
    std::vector<fs::path> read;
    TokenizerFilesOf(paths.source, read, diagnostics);
    for (const fs::path& file : read) facts.Add(paths.source, file);
  } catch (const Error& error) {
    if (!fs::exists(paths.source)) throw;
    unreadable = error;
  }
  return SourceFiles(paths.source, facts);
}

// The files of the checks. Throws Errors, one for each that is missing.
RoleFiles CheckFilesOf(const Recipe& recipe) {
  RoleFiles files;
  std::vector<Error> errors;
  auto add = [&](const std::string& role, const std::string& file, const std::string& where) {
    try {
      AddFiles(role, recipe.folder / file, files);
    } catch (const Error& error) {
      errors.push_back(Error(error).Note("recipe \"{}\", {}", recipe.file.string(), where));
    }
  };
  for (const auto& [input, file] : recipe.inputs)
    add("input " + input, file, "check.inputs." + input);
  for (const auto& [output, file] : recipe.reference)
    add("reference " + output, file, "check.reference." + output);
  if (recipe.accuracy) add("labels", recipe.accuracy->labels, "check.accuracy.labels");
  if (!errors.empty()) throw Errors(std::move(errors));
  return files;
}

// Removes the scale behind the path of an adapter, DIR=0.5.
fs::path WithoutScale(const fs::path& path) {
  std::error_code error;
  const size_t equals = path.native().rfind('=');
  if (equals == std::string::npos || fs::exists(path, error)) return path;
  return path.native().substr(0, equals);
}

}  // namespace

bool IsWanted(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

std::vector<SourceFile> FilesOfSource(const fs::path& source, const fs::path& data_root,
                                      Diagnostics& diagnostics) {
  std::optional<Error> unreadable;
  std::vector<SourceFile> files = FilesOf({source, data_root}, diagnostics, unreadable);
  if (unreadable) throw *unreadable;
  return files;
}

RecipeInputs FindInputs(const Recipe& recipe) {
  const SourcePaths paths = PathsOf(recipe);
  Diagnostics said;
  return {FilesOfSource(paths.source, paths.data_root, said), CheckFilesOf(recipe)};
}

RecipeInputs CheckRecipe(const Recipe& recipe, BuildFolder& folder, Diagnostics& diagnostics) {
  const SourcePaths paths = PathsOf(recipe);
  std::optional<Error> unreadable;  // reported only if the hash matches the recipe
  RecipeInputs inputs;
  const std::optional<std::vector<SourceFile>> known = folder.Known(paths.source, paths.data_root);
  if (known) {
    inputs.source = *known;
  } else {
    inputs.source = SourceHashes(FilesOf(paths, diagnostics, unreadable), false).Finish();
    for (SourceFile& file : inputs.source) file.sha256 = folder.digests().Of(file.path).sha256;
  }
  if (std::string found = CombinedSha256(inputs.source); found != recipe.sha256) {
    Error error("check-failed", "source \"{}\": hash mismatch", paths.source.string());
    error.Expected(recipe.sha256).Note("found: " + found);
    if (inputs.source.size() > 1)
      for (const SourceFile& file : inputs.source) error.Note(file.sha256 + "  " + file.name);
    throw error.Help(
        "fetch the model that the recipe was written for, or update the hash in the recipe");
  }
  if (unreadable) throw *unreadable;
  if (!known) folder.Remember(paths.source, paths.data_root, inputs.source);
  inputs.checks = CheckFilesOf(recipe);
  return inputs;
}

RecipeInputs CheckRecipeOfTest(const Recipe& recipe, BuildFolder& folder,
                               Diagnostics& diagnostics) {
  if (fs::exists(PathsOf(recipe).source)) return CheckRecipe(recipe, folder, diagnostics);
  return {{}, CheckFilesOf(recipe)};
}

VariantInputs CheckVariant(const Recipe& recipe, const Recipe::Variant& variant,
                           const CompileOptions& base) {
  if (!variant.errors.empty()) throw Errors(variant.errors);
  VariantInputs inputs{.options = base};
  std::vector<Option> table =
      Without(CompileTable(inputs.options), {"--save-ir", "--stats", "--report", "--data-root"});
  GivenOptions given = ParseOptions(table, variant.options);
  for (const Option& option : table) {
    auto it = given.find(option.key());
    if (it == given.end()) continue;
    for (std::string& value : it->second)
      if (std::optional<size_t> place = PlaceIn(option, value)) {
        const std::string typed = value.substr(*place);
        const fs::path path = recipe.folder / typed;
        value = value.substr(0, *place) + path.string();
        // Results that compression stores for the next run do not change what it computes.
        if (option.name != "--resume")
          AddFiles(fmt::format("{} {}", option.name, typed), WithoutScale(path), inputs.files);
      }
  }
  Fill(table, given);
  inputs.options.sha256 = true;
  if (!recipe.data_root.empty())
    inputs.options.import.data_root = (recipe.folder / recipe.data_root).string();
  return inputs;
}

}  // namespace mlc::driver
