// The files with the tokenizer of a package.
#include <nlohmann/json.hpp>

#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/text/tokenizer_difference.h"
#include "tools/driver/frontends.h"
#include "tools/driver/output_path.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

constexpr char kTokenizer[] = "tokenizer.json", kSettings[] = "tokenizer_config.json",
               kModel[] = "config.json";
// The member of tokenizer_config.json by which mlc recognises its own files.
constexpr char kWrittenBy[] = "written_by";

std::string TextOf(const fs::path& path) {
  return std::string(AsText(MappedFile::Open(path)->bytes()));
}

// Returns whether mlc wrote the files in a folder; what cannot be read is someone else's.
bool IsOurs(const fs::path& folder) {
  InputRegistry::Unnoted look;
  std::error_code ignored;
  try {
    if (!fs::is_regular_file(folder / kSettings, ignored)) return false;
    const nlohmann::ordered_json json = ParseJsonIfValid(TextOf(folder / kSettings));
    return json.is_object() && json.value(kWrittenBy, nlohmann::ordered_json()) == "mlc";
  } catch (const Error&) {
    return false;
  }
}

bool HasContents(const fs::path& path, const std::string& bytes) {
  InputRegistry::Unnoted look;
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && TextOf(path) == bytes;
}

// The names and contents of the files in the order in which they are written: the one by which mlc
// recognises them comes first, so that an interrupted installation can be repeated.
std::vector<std::pair<const char*, std::string>> Contents(const TokenizerFiles& files) {
  nlohmann::ordered_json settings =
      files.config.empty() ? nlohmann::ordered_json::object() : ParseJson(files.config);
  settings[kWrittenBy] = "mlc";
  std::vector<std::pair<const char*, std::string>> all;
  all.emplace_back(kSettings, JsonText(settings, 2) + "\n");
  if (!files.model.empty()) all.emplace_back(kModel, files.model);
  all.emplace_back(kTokenizer, files.tokenizer);
  return all;
}

// Returns whether a folder has these files, or the same in another form, such as the folder of the
// source model.
bool HasFiles(const fs::path& folder, const TokenizerFiles& files) {
  bool same = true;
  for (const auto& [name, bytes] : Contents(files))
    same = same && HasContents(folder / name, bytes);
  if (same) return true;
  InputRegistry::Unnoted look;
  try {
    std::vector<fs::path> read;
    const TokenizerFiles found = safetensors::ReadHuggingFaceTexts(folder, read);
    return found.tokenizer == files.tokenizer && found.config == files.config &&
           found.model == files.model;
  } catch (const Error&) {
    return false;
  }
}

// Returns another package in the folder of a package that has no tokenizer of its own.
fs::path OtherPackage(const fs::path& package) {
  std::error_code ignored;
  const fs::path own = TokenizerFolder(package, TokenizerPlace::kBeside);
  for (const fs::directory_entry& entry :
       fs::directory_iterator(TokenizerFolder(package, TokenizerPlace::kFolder), ignored)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".mlpackage" && path.extension() != ".mlmodelc") continue;
    const fs::path other = TokenizerFolder(path, TokenizerPlace::kBeside);
    if (other.filename() != own.filename() && !fs::exists(other, ignored)) return path;
  }
  return {};
}

void CheckConflict(const fs::path& path, const fs::path& package, TokenizerPlace place) {
  const fs::path folder = TokenizerFolder(package, place);
  if (!IsOurs(folder))
    throw Error("file-exists", "\"{}\" already exists and was not written by mlc", path.string())
        .Help("choose another output, remove it first, or pass --force");
  if (place == TokenizerPlace::kBeside) return;
  if (const fs::path other = OtherPackage(package); !other.empty())
    throw Error("file-exists", "\"{}\" belongs to {}, whose tokenizer or configuration differs",
                path.string(), other.filename().string())
        .Help("choose another folder; with -o {}, the tokenizer is in {}", package.string(),
              TokenizerFolder(package, TokenizerPlace::kBeside).filename().string());
}

}  // namespace

TokenizerFiles TokenizerFilesOf(const fs::path& model, std::vector<fs::path>& read,
                                Diagnostics& diagnostics) {
  const Frontend& frontend = FrontendOf(model);
  if (!frontend.tokenizer) return {};
  try {
    return frontend.tokenizer(model, read);
  } catch (const Error& error) {
    read.clear();
    Error warning(error.id(), "the package has no tokenizer beside it: " + error.text());
    if (error.has_location()) warning.At(error.location());
    diagnostics.Warn(warning);
    return {};
  }
}

std::optional<std::string> TokenizerDifference(const fs::path& model, const fs::path& package,
                                               Diagnostics& diagnostics) {
  const Format format = FrontendOf(package).format;
  if (format != Format::kPackage && format != Format::kBundle) return std::nullopt;
  std::vector<fs::path> read;
  Diagnostics of_model;
  const TokenizerFiles expected = TokenizerFilesOf(model, read, of_model);
  if (!of_model.warnings().empty())
    diagnostics.Note("the tokenizer beside the package was not compared: {}",
                     of_model.warnings()[0].text());
  if (expected.tokenizer.empty()) return std::nullopt;
  const fs::path folder = TokenizerBeside(package);
  if (folder.empty()) return "there is no tokenizer beside the package";
  if (HasFiles(folder, expected)) return "";
  try {
    const text::Tokenizer own = LoadTokenizer(package),
                          source(safetensors::ParseHuggingFaceTokenizer(
                              expected.tokenizer, expected.config, model.string()));
    const std::string difference = Difference(own.spec(), source.spec());
    return difference.empty() ? safetensors::HuggingFaceTokenizerDifference(
                                    TextOf(folder / kTokenizer), expected.tokenizer)
                              : difference;
  } catch (const Error& error) {
    return fmt::format("{} differs from the source's, and cannot be compared by content: {}",
                       folder.filename().string(), error.text());
  }
}

TokenizerInstallation::TokenizerInstallation(const fs::path& package, const TokenizerFiles& files,
                                             TokenizerPlace place, bool force) {
  const fs::path own = TokenizerFolder(package, TokenizerPlace::kBeside),
                 shared = TokenizerFolder(package, TokenizerPlace::kFolder);
  std::error_code ignored;
  if (!files.tokenizer.empty()) {
    folder_ = TokenizerFolder(package, place);
    if (!HasFiles(folder_, files)) {
      const std::vector<std::pair<const char*, std::string>> contents = Contents(files);
      if (place == TokenizerPlace::kBeside) {
        if (!force && fs::exists(folder_, ignored)) CheckConflict(folder_, package, place);
        const fs::path path = staged_.emplace_back(folder_, Staging::kFolder, force).path();
        fs::create_directory(path);
        for (const auto& [name, bytes] : contents) WriteFile(path / name, bytes);
      } else {
        for (const auto& [name, bytes] : contents) {
          const fs::path path = folder_ / name;
          if (HasContents(path, bytes)) continue;
          if (!force && fs::exists(path, ignored)) CheckConflict(path, package, place);
          OutputFile out(staged_.emplace_back(path, Staging::kFile).path());
          out.Write(bytes);
          out.Close();
        }
      }
    }
  }
  if (folder_ != own && IsOurs(own)) stale_.push_back(own);
  if (folder_.empty() && IsOurs(shared) && OtherPackage(package).empty())
    for (const char* name : {kTokenizer, kModel, kSettings}) stale_.push_back(shared / name);
}

void TokenizerInstallation::Commit() {
  for (Staging& staging : staged_) staging.Commit();
  for (const fs::path& path : stale_) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw Error("file-io", "cannot remove \"{}\": {}", path.string(), error.message());
  }
}

TokenizerInstallation CopyTokenizer(const fs::path& package, const fs::path& output, bool force) {
  const fs::path folder = TokenizerBeside(package);
  TokenizerFiles files;
  std::vector<fs::path> read;
  if (!folder.empty()) files = safetensors::ReadHuggingFaceTexts(folder, read);
  const bool beside = folder == TokenizerFolder(package, TokenizerPlace::kBeside);
  return TokenizerInstallation(output, files,
                               beside ? TokenizerPlace::kBeside : TokenizerPlace::kFolder, force);
}

void WriteTokenizer(const fs::path& folder, const TokenizerFiles& files) {
  // The name of a package in the folder, which stands for it.
  const fs::path package = OutputPath(folder / "", ".mlpackage");
  TokenizerInstallation(package, files, TokenizerPlace::kFolder, false).Commit();
}

}  // namespace mlc::driver
