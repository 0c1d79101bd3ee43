#include "frontends/safetensors/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"

namespace fs = std::filesystem;

namespace mlc {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kMember = "tokenizer_config";
// A vocabulary and its merges have a few millions.
constexpr JsonBounds kBounds{.depth = 64, .values = size_t{1} << 24};

// The members of the object, without what is in them; null where the text is no object.
Json Members(std::string_view text) {
  return Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth <= 1; }, false);
}

// Empty: the file is not there.
std::string TextOf(const fs::path& path, std::vector<fs::path>& read) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  read.push_back(path);
  return std::string(WithoutBom(AsText(MappedFile::Open(path)->bytes())));
}

void RequireObject(std::string_view text, const fs::path& path) {
  RequireJson(text, "bad-file", path.string(), kBounds);
  if (!Members(text).is_object())
    throw Error("bad-file", "this is no JSON object").At({path.string(), ""});
}

}  // namespace

std::string HuggingFaceTokenizerFile(const fs::path& folder, std::vector<fs::path>& read) {
  const fs::path path = folder / "tokenizer.json", config_path = folder / "tokenizer_config.json";
  std::string text = TextOf(path, read);
  if (text.empty()) return "";
  RequireObject(text, path);
  if (Members(text).contains(kMember)) return text;
  Json config = Json::object();
  if (const std::string own = TextOf(config_path, read); !own.empty()) {
    RequireObject(own, config_path);
    config = Json::parse(own);
  }
  if (std::string chat = TextOf(folder / "chat_template.jinja", read); !chat.empty())
    config["chat_template"] = std::move(chat);
  // All before the brace that closes the object is as it was.
  text.resize(text.rfind('}'));
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  const bool first = text.ends_with('{');
  return text + fmt::format("{}\n  \"{}\": {}\n}}\n", first ? "" : ",", kMember,
                            config.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool IsHuggingFaceTokenizerFile(std::string_view text) {
  const Json members = Members(text);
  return members.is_object() && members.contains(kMember);
}

}  // namespace mlc
