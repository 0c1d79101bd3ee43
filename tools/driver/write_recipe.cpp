#include "tools/driver/write_recipe.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "lib/ir/npy.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/percent_encoding.h"
#include "lib/support/regular_file.h"
#include "tools/driver/build_inputs.h"
#include "tools/driver/run.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

// Turns the name of a model into one that the schema allows: "My Net.v2" -> "my-net-v2".
std::string RecipeName(const fs::path& model) {
  constexpr size_t kLongest = 64;
  const fs::path absolute = fs::absolute(model).lexically_normal();
  std::string text = (absolute.has_filename() ? absolute : absolute.parent_path()).stem().string();
  if (text == "model" && absolute.parent_path().has_filename())
    text = absolute.parent_path().filename().string();
  std::string name;
  for (char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (plain)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.empty() || name[0] == '_') name = "m" + name;
  return name.substr(0, kLongest);
}

std::string SourceHash(const fs::path& source, const fs::path& data_root) {
  Diagnostics said;
  const std::vector<SourceFile> files = FilesOfSource(source, data_root, said);
  return CombinedSha256(SourceHashes(files, true).Finish());
}

}  // namespace

fs::path InitRecipe(const fs::path& model, const fs::path& folder, Diagnostics& diagnostics) {
  const std::string name = RecipeName(model);
  const fs::path recipe = folder / (name + ".json"), samples = folder / (name + "-check");
  std::error_code error;
  for (const fs::path& path : {recipe, samples})
    if (fs::exists(path, error))
      throw Error("file-exists", "\"{}\" exists", path.string())
          .Help("remove it first, or choose another folder with -o");
  RunOptions options;
  Model loaded(model, options, diagnostics);
  const RunTensors tensors(loaded, options);
  const RunTensors::Once once = tensors.Predict(*loaded.Load());

  fs::create_directories(folder);
  Staging staging(samples, Staging::kFolder);
  fs::create_directory(staging.path());
  Json inputs = Json::object(), reference = inputs;
  auto write = [&](const char* kind, const std::string& port, const Tensor& tensor, Json& into) {
    const std::string file = fmt::format("{}-{}.npy", kind, FileStem(port));
    WriteNpy(staging.path() / file, tensor);
    into[port] = samples.filename().string() + "/" + file;
  };
  const std::map<std::string, Tensor> given = tensors.Inputs();
  for (const Port& port : loaded.function().inputs)
    write("input", port.source_name, given.at(port.name), inputs);
  for (const RunOutput& output : once.outputs)
    if (output.tensor.dtype() != DType::kString)
      write("output", output.port->source_name, output.tensor, reference);
  staging.Commit();
  const Json json{{"name", name},
                  {"source",
                   {{"path", fs::absolute(model).lexically_relative(fs::absolute(folder)).string()},
                    {"sha256", SourceHash(model, "")}}},
                  {"variants",
                   {{{"name", "fp16"}, {"options", Json::array()}},
                    {{"name", "fp32"}, {"options", {"--precision", "fp32"}}}}},
                  {"check", {{"inputs", inputs}, {"reference", reference}}}};
  WriteFile(recipe, JsonText(json, 2) + "\n");
  return recipe;
}

UpdatedRecipe UpdateRecipe(const std::string& path) {
  InputRegistry::Unnoted unnoted;  // the recipe is read to be replaced
  const Recipe recipe = ReadRecipe(path);
  const fs::path data_root =
      recipe.data_root.empty() ? fs::path() : recipe.folder / recipe.data_root;
  UpdatedRecipe updated{path, recipe.sha256, SourceHash(recipe.folder / recipe.source, data_root)};
  if (updated.before == updated.after) return updated;
  std::string text(AsText(MappedFile::Open(path)->bytes()));
  const size_t at = text.find(updated.before);
  if (at == text.npos || text.find(updated.before, at + 1) != text.npos)
    throw Error("bad-recipe", "the hash {} does not occur exactly once in the text", updated.before)
        .At({path, ""})
        .Help("replace source.sha256 by " + updated.after);
  text.replace(at, updated.before.size(), updated.after);
  Staging staging(path, Staging::kFile);
  OutputFile file(staging.path());
  file.Write(text);
  file.Close();
  staging.Commit();
  return updated;
}

}  // namespace mlc::driver
