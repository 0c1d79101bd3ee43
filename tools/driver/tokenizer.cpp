#include "tools/driver/tokenizer.h"

#include <array>

#include "frontends/gguf/tokenizer.h"
#include "frontends/safetensors/tokenizer.h"
#include "lib/support/mapped_file.h"
#include "tools/driver/frontends.h"
#include "tools/driver/output_path.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

text::TokenizerSpec ReadTokenizer(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (fs::exists(path / "tokenizer.json", ignored))
      return safetensors::ReadHuggingFaceTokenizer(path);
    const Frontend& frontend = FrontendOf(path);
    if (frontend.IsSource())
      throw Error("unsupported-tokenizer", "the folder has no tokenizer.json")
          .Help(
              "save it with transformers: AutoTokenizer.from_pretrained(FOLDER, "
              "use_fast=True).save_pretrained(FOLDER)");
    fs::path beside = TokenizerBeside(path);
    if (beside.empty())
      throw Error("unsupported-tokenizer", "there is no tokenizer beside this .{}", frontend.name)
          .Expected("a tokenizer.json in {} or in the folder of the package",
                    TokenizerFolder(path, TokenizerPlace::kBeside).string())
          .Help(
              "copy it together with the package, or pass the source model (mlc run: --tokenizer "
              "MODEL)");
    return ReadTokenizer(beside);
  }
  auto file = MappedFile::Open(path);
  std::array<std::byte, 4> magic = {};
  file->Read(0, std::span(magic).first(std::min(magic.size(), file->size())));
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) == "GGUF")
    return ReadGgufTokenizer(gguf::GgufFile::Open(file));
  if (magic[0] == std::byte{'{'}) return safetensors::ReadHuggingFaceTokenizer(path);
  throw Error("unsupported-tokenizer", "{} has no tokenizer that mlc supports",
              FrontendOf(path).what)
      .Expected("a GGUF, a Hugging Face folder, a tokenizer.json, or a package with one beside it");
}

}  // namespace

text::Tokenizer LoadTokenizer(const fs::path& path) {
  try {
    return text::Tokenizer(ReadTokenizer(path));
  } catch (Error& error) {
    if (!error.has_location()) error.At({path.string(), ""});
    throw;
  }
}

fs::path TokenizerFolder(const fs::path& package, TokenizerPlace place) {
  const fs::path path = WithoutSlash(package);
  if (place == TokenizerPlace::kBeside) return fs::path(path).replace_extension(".tokenizer");
  return path.has_parent_path() ? path.parent_path() : ".";
}

fs::path TokenizerBeside(const fs::path& package) {
  std::error_code ignored;
  for (TokenizerPlace place : {TokenizerPlace::kBeside, TokenizerPlace::kFolder})
    if (fs::path folder = TokenizerFolder(package, place);
        fs::is_regular_file(folder / "tokenizer.json", ignored))
      return folder;
  return {};
}

}  // namespace mlc::driver
