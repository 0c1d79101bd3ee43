// The files of a tokenizer as texts, and their comparison.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frontends/safetensors/tokenizer.h"
#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"

namespace fs = std::filesystem;

namespace mlc::safetensors {

using Json = nlohmann::ordered_json;

namespace {

// Vocabularies and merges have up to a few million values.
constexpr JsonBounds kBounds{.depth = 64, .values = size_t{1} << 24};

}  // namespace

HuggingFaceTexts ReadHuggingFaceTexts(const fs::path& folder, std::vector<fs::path>& read) {
  std::error_code ignored;
  auto text = [&](const char* name) -> std::string {
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, ignored)) return "";
    read.push_back(path);
    return std::string(WithoutBom(AsText(MappedFile::Open(path)->bytes())));
  };
  HuggingFaceTexts texts{.tokenizer = text("tokenizer.json")};
  if (texts.tokenizer.empty()) return texts;
  const std::string path = (folder / "tokenizer.json").string();
  RequireJson(texts.tokenizer, "bad-file", path, kBounds);
  if (texts.tokenizer[texts.tokenizer.find_first_not_of(" \t\r\n")] != '{')
    throw Error("bad-file", "the file is not a JSON object").At({path, ""});
  texts.config = HuggingFaceTokenizerConfig(folder, &read);
  texts.model = text("config.json");
  return texts;
}

std::string HuggingFaceTokenizerDifference(std::string_view found, std::string_view expected) {
  const auto own = nlohmann::json::parse(found, nullptr, false),
             source = nlohmann::json::parse(expected, nullptr, false);
  for (const char* name : {"/decoder", "/truncation", "/padding", "/model/dropout"}) {
    const nlohmann::json::json_pointer at(name);
    // A missing member counts as null.
    if (own.value(at, nlohmann::json()) != source.value(at, nlohmann::json()))
      return fmt::format("\"{}\" differs from the source's", name + 1);
  }
  return "";
}

}  // namespace mlc::safetensors
