// Implements HuggingFaceTokenizerFile, and the comparison of such files.
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

constexpr std::string_view kMember = "tokenizer_config";
// Vocabularies and merges have up to a few million values.
constexpr JsonBounds kBounds{.depth = 64, .values = size_t{1} << 24};

// Returns the members of the object without their contents; null if the text is not an object.
Json Members(std::string_view text) {
  return Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth <= 1; }, false);
}

}  // namespace

std::string HuggingFaceTokenizerFile(const fs::path& folder, std::vector<fs::path>& read) {
  const fs::path path = folder / "tokenizer.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  read.push_back(path);
  std::string text(WithoutBom(AsText(MappedFile::Open(path)->bytes())));
  RequireJson(text, "bad-file", path.string(), kBounds);
  const Json members = Members(text);
  if (!members.is_object())
    throw Error("bad-file", "the file is not a JSON object").At({path.string(), ""});
  if (members.contains(kMember)) return text;
  const std::string config = HuggingFaceTokenizerConfig(folder, &read);
  // The text before the closing brace of the object remains unchanged.
  text.resize(text.rfind('}'));
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  const bool first = text.ends_with('{');
  return text + fmt::format("{}\n  \"{}\": {}\n}}\n", first ? "" : ",", kMember,
                            config.empty() ? "{}" : config);
}

bool IsHuggingFaceTokenizerFile(std::string_view text) {
  const Json members = Members(text);
  return members.is_object() && members.contains(kMember);
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
