// The tokenizer file beside a package.
#include "frontends/gguf/tokenizer.h"
#include "frontends/safetensors/tokenizer.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/text/tokenizer_difference.h"
#include "tools/driver/frontends.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

// A format, and the test whether mlc wrote a file of it.
struct FormatRow {
  std::string_view name;
  bool (*is_ours)(const fs::path& path);
};
constexpr FormatRow kFormats[] = {
    {"gguf", [](const fs::path& path) { return IsGgufTokenizerFile(gguf::GgufFile::Open(path)); }},
    {"json",
     [](const fs::path& path) {
       return safetensors::IsHuggingFaceTokenizerFile(AsText(MappedFile::Open(path)->bytes()));
     }},
};

bool IsOurs(const FormatRow& row, const fs::path& path) {
  InputRegistry::Unnoted look;
  try {
    return row.is_ours(path);
  } catch (const Error&) {  // not a valid file
    return false;
  }
}

}  // namespace

TokenizerFile TokenizerFileOf(const fs::path& model, std::vector<fs::path>& read,
                              Diagnostics& diagnostics) {
  const Frontend& frontend = FrontendOf(model);
  if (!frontend.tokenizer) return {};
  try {
    TokenizerFile file{std::string(frontend.tokenizer_format), frontend.tokenizer(model, read)};
    return file.bytes.empty() ? TokenizerFile() : file;
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
  const TokenizerFile expected = TokenizerFileOf(model, read, of_model);
  if (!of_model.warnings().empty())
    diagnostics.Note("the tokenizer beside the package was not compared: {}",
                     of_model.warnings()[0].text());
  if (expected.format.empty()) return std::nullopt;
  const TokenizerFile found = ReadTokenizerBeside(package);
  if (found.format.empty()) return "there is no tokenizer beside the package";
  if (found.bytes == expected.bytes) return "";
  try {
    const text::Tokenizer own = LoadTokenizer(package), source = LoadTokenizer(model);
    std::string difference = Difference(own.spec(), source.spec());
    if (difference.empty() && found.format == "json" && expected.format == "json")
      difference = safetensors::HuggingFaceTokenizerDifference(found.bytes, expected.bytes);
    return difference;
  } catch (const Error& error) {
    return fmt::format("{} differs from the source's, and cannot be compared by content: {}",
                       TokenizerBeside(package).filename().string(), error.text());
  }
}

TokenizerFile ReadTokenizerBeside(const fs::path& package) {
  const fs::path path = TokenizerBeside(package);
  if (path.empty()) return {};
  return {path.extension().string().substr(1),
          std::string(AsText(MappedFile::Open(path)->bytes()))};
}

fs::path TokenizerPath(const fs::path& package, std::string_view format) {
  fs::path path = package.has_filename() ? package : package.parent_path();
  return path.replace_extension(fmt::format(".tokenizer.{}", format));
}

void CheckTokenizerTarget(const fs::path& package, const TokenizerFile& file, bool force) {
  if (file.format.empty()) return;
  std::error_code ignored;
  for (const FormatRow& row : kFormats) {
    const fs::path path = TokenizerPath(package, row.name);
    Staging check(path, Staging::kFile);
    if (!force && fs::exists(path, ignored) && !IsOurs(row, path))
      throw Error("file-exists", "\"{}\" already exists and was not written by mlc", path.string())
          .Help("choose another output, remove it first, or pass --force");
  }
}

void InstallTokenizer(const fs::path& package, const TokenizerFile& file) {
  for (const FormatRow& row : kFormats) {
    const fs::path path = TokenizerPath(package, row.name);
    std::error_code error;
    if (row.name == file.format) {
      WriteFile(path, file.bytes);
    } else if (fs::is_regular_file(path, error) && (!file.format.empty() || IsOurs(row, path))) {
      fs::remove(path, error);
      if (error) throw Error("file-io", "cannot remove \"{}\": {}", path.string(), error.message());
    }
  }
}

}  // namespace mlc::driver
