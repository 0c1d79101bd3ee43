#include "frontends/safetensors/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "frontends/safetensors/tokenizer_steps.h"
#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/utf8.h"
#include "lib/text/vocabulary.h"

namespace fs = std::filesystem;

namespace mlc::safetensors {

using Json = nlohmann::json;

namespace {

// The largest published files have 35 MB and two million values.
constexpr size_t kMostBytes = size_t{128} << 20;
constexpr JsonBounds kBounds = {.depth = 64, .values = size_t{1} << 22};
// Ids may have gaps, which use memory: the limit is this number plus three per token.
constexpr size_t kMostGaps = size_t{1} << 16;

Json Parse(std::string_view text, const std::string& file) {
  RequireJson(text, "bad-file", file, kBounds);
  Json json = Json::parse(text);
  if (!json.is_object())
    throw Error("bad-file", "the file is not a JSON object").At({file, ""}).Expected("{...}");
  return json;
}

std::string ReadText(const fs::path& path) {
  auto file = MappedFile::Open(path);
  if (file->size() > kMostBytes)
    throw Error("resource-limit", "the file has {} bytes", file->size())
        .At({path.string(), ""})
        .Expected("at most {} bytes", kMostBytes);
  std::string text(file->size(), '\0');
  file->Read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

class Reader {
 public:
  explicit Reader(const Json& file) : file_(file) {}

  text::TokenizerSpec Read(const Json& config) {
    ReadModel();
    ReadAddedTokens();
    bool byte_level = false;
    AddNormalizers(Part("normalizer"), spec_.normalizers);
    AddPreTokenizers(Part("pre_tokenizer"), spec_, byte_level);
    ReadDecoder(Part("decoder"), byte_level);
    // Without a template, texts follow each other.
    spec_.pair = {{}, {.text = 1, .type = 1}};
    ReadPostProcessor(Part("post_processor"));
    if (byte_level && spec_.kind != text::TokenizerKind::kByteBpe)
      Refuse("ByteLevel with a model that is not BPE");
    spec_.byte_encoded = byte_level;
    spec_.has_template = true;
    spec_.hugging_face = true;
    RequireUnknown();
    ReadConfig(config);
    return std::move(spec_);
  }

 private:
  [[noreturn]] static void Refuse(const std::string& what) {
    throw Error("unsupported-tokenizer", "{} is not supported", what);
  }
  template <class... Args>
  [[noreturn]] static void Bad(TextFormat<Args...> text, Args&&... args) {
    throw Error("bad-file", fmt::format(text, std::forward<Args>(args)...));
  }

  const Json& Part(const char* name) const { return Member(file_, name); }

  void SetToken(int64_t id, const std::string& text, text::TokenType type) {
    const int64_t most = static_cast<int64_t>(
        4 * (Member(Part("model"), "vocab").size() + Part("added_tokens").size()) + kMostGaps);
    if (id < 0 || id >= most)
      Bad("token \"{}\" has the id {}, which is not in the range 0 to {}", text, id, most - 1);
    size_t at = static_cast<size_t>(id);
    if (at >= spec_.tokens.size()) {
      spec_.tokens.resize(at + 1);
      spec_.types.resize(at + 1, text::TokenType::kUnused);
      spec_.in_model.resize(at + 1);
    }
    if (spec_.types[at] != text::TokenType::kUnused && spec_.tokens[at] != text)
      Bad("the tokens \"{}\" and \"{}\" have the same id, {}", spec_.tokens[at], text, id);
    spec_.tokens[at] = text;
    spec_.types[at] = type;
    ids_[text] = static_cast<int32_t>(id);
  }

  int32_t IdOf(const std::string& text) const {
    auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  void ReadVocabulary(const Json& model) {
    const Json& vocabulary = Member(model, "vocab");
    if (!vocabulary.is_object()) Bad("\"model.vocab\" is missing or not an object of token ids");
    for (const auto& [text, id] : vocabulary.items()) {
      if (!id.is_number_integer()) Bad("the id of token \"{}\" is not an integer", text);
      SetToken(id.get<int64_t>(), text, text::TokenType::kNormal);
      spec_.in_model[id.get<size_t>()] = true;
    }
    if (spec_.tokens.empty()) Bad("\"model.vocab\" is empty");
  }

  void ReadModel() {
    const Json& model = Part("model");
    if (!model.is_object()) Bad("\"model\" is missing or not an object");
    std::string type = Text(model, "type", model.contains("merges") ? "BPE" : "");
    spec_.byte_fallback = Flag(model, "byte_fallback", false);
    if (type == "BPE") {
      spec_.kind = text::TokenizerKind::kByteBpe;
      for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (!Text(model, name, "").empty()) Refuse(fmt::format("a BPE model with {}", name));
      spec_.fuse_unknown = Flag(model, "fuse_unk", false);
      spec_.ignore_merges = Flag(model, "ignore_merges", false);
      ReadVocabulary(model);
      ReadUnknown(model);
      ReadMerges(Member(model, "merges"));
    } else if (type == "WordPiece") {
      spec_.kind = text::TokenizerKind::kWordPiece;
      spec_.continuing = Text(model, "continuing_subword_prefix", "##");
      const Json& most = Member(model, "max_input_chars_per_word");
      spec_.max_word_characters =
          most.is_number_unsigned()
              ? static_cast<int>(std::min<uint64_t>(most.get<uint64_t>(), 1 << 20))
              : 100;
      ReadVocabulary(model);
      unknown_ = "[UNK]";
      ReadUnknown(model);
    } else if (type == "Unigram") {
      spec_.kind = text::TokenizerKind::kUnigram;
      ReadScores(model);
    } else {
      Refuse(fmt::format("the model \"{}\"", type));
    }
    if (spec_.byte_fallback)
      for (size_t id = 0; id < spec_.tokens.size(); ++id)
        if (spec_.tokens[id].size() == 6 && spec_.tokens[id].starts_with("<0x"))
          spec_.types[id] = text::TokenType::kByte;
  }

  void ReadUnknown(const Json& model) {
    if (!Member(model, "unk_token").is_null()) unknown_ = Text(model, "unk_token", "");
    if (unknown_) spec_.unk = IdOf(*unknown_);
  }

  // Hugging Face's library fails at the first text for which it needs an unknown token that the
  // model lacks. A vocabulary with all bytes never needs one.
  void RequireUnknown() const {
    if (!unknown_ || spec_.unk >= 0) return;
    if (spec_.kind == text::TokenizerKind::kByteBpe) {
      bool all = true;
      for (int byte = 0; byte < 256; ++byte) {
        std::string token = spec_.byte_encoded ? text::Gpt2OfByte(static_cast<unsigned char>(byte))
                                               : fmt::format("<0x{:02X}>", byte);
        int32_t id = IdOf(token);
        all &= id >= 0 && spec_.in_model[static_cast<size_t>(id)];
      }
      if (all && (spec_.byte_encoded || spec_.byte_fallback)) return;
    }
    Bad("\"model.unk_token\" is \"{}\", which is not in \"model.vocab\"", *unknown_);
  }

  void ReadMerges(const Json& merges) {
    if (!merges.is_array()) Bad("\"model.merges\" is missing or not a list");
    spec_.merges.reserve(merges.size());
    for (const Json& merge : merges) {
      if (merge.is_string()) {
        const std::string& text = merge.get_ref<const std::string&>();
        if (text.starts_with("#version")) continue;
        size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
          Bad("the merge \"{}\" is not a pair", text);
        spec_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        spec_.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      } else {
        Bad("a merge is not a pair of strings");
      }
      const auto& [left, right] = spec_.merges.back();
      for (const std::string& part : {left, right, left + right})
        if (IdOf(part) < 0)
          Bad("the merge of \"{}\" and \"{}\" needs the token \"{}\", which is not in "
              "\"model.vocab\"",
              left, right, part);
    }
    // If merges are equal, the last one is used.
    std::set<std::pair<std::string_view, std::string_view>> seen;
    std::vector<bool> repeated(spec_.merges.size());
    bool any = false;
    for (size_t i = spec_.merges.size(); i-- > 0;)
      any |= repeated[i] = !seen.emplace(spec_.merges[i].first, spec_.merges[i].second).second;
    if (!any) return;
    seen.clear();
    size_t i = 0;
    std::erase_if(spec_.merges, [&](const auto&) { return repeated[i++]; });
  }

  void ReadScores(const Json& model) {
    const Json& vocabulary = Member(model, "vocab");
    if (!vocabulary.is_array() || vocabulary.empty())
      Bad("\"model.vocab\" is missing or not a list of tokens and scores");
    for (const Json& each : vocabulary) {
      if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number())
        Bad("an element of \"model.vocab\" is not a token with a score");
      SetToken(static_cast<int64_t>(spec_.scores.size()), each[0].get<std::string>(),
               text::TokenType::kNormal);
      spec_.in_model.back() = true;
      spec_.scores.push_back(each[1].get<float>());
    }
    const Json& unknown = Member(model, "unk_id");
    if (!unknown.is_null()) {
      if (!unknown.is_number_unsigned() || unknown.get<uint64_t>() >= spec_.tokens.size())
        Bad("\"model.unk_id\" is {}, but \"model.vocab\" has {} tokens", unknown.dump(),
            spec_.tokens.size());
      spec_.unk = unknown.get<int32_t>();
      spec_.types[static_cast<size_t>(spec_.unk)] = text::TokenType::kUnknown;
    }
  }

  void ReadAddedTokens() {
    const Json& list = Part("added_tokens");
    if (list.is_null()) return;
    if (!list.is_array()) Bad("\"added_tokens\" is not a list");
    // The library assigns new ids to added tokens that the model lacks, starting at the size of its
    // vocabulary.
    int64_t next = static_cast<int64_t>(Member(Part("model"), "vocab").size());
    for (const Json& token : list) {
      const Json& id = Member(token, "id");
      std::string text = Text(token, "content", "");
      if (!id.is_number_integer() || text.empty())
        Bad("an added token has no \"id\" or no \"content\"");
      int32_t known = IdOf(text);
      int64_t given = id.get<int64_t>(), expected = known >= 0 ? known : next++;
      if (given != expected)
        throw Error("bad-file", "the added token \"{}\" has the id {}", text, given)
            .Expected("{}, {}", expected,
                      known >= 0
                          ? "its id in the vocabulary"
                          : "the next id after the vocabulary, as in Hugging Face's library");
      SetToken(given, text,
               Flag(token, "special", false) ? text::TokenType::kControl
                                             : text::TokenType::kUserDefined);
      text::AddedToken added{static_cast<int32_t>(given), Flag(token, "lstrip", false),
                             Flag(token, "rstrip", false), Flag(token, "single_word", false),
                             Flag(token, "normalized", false)};
      // If there are several, the last one is used.
      std::erase_if(spec_.added,
                    [&](const text::AddedToken& other) { return other.id == added.id; });
      spec_.added.push_back(added);
    }
    if (!spec_.scores.empty()) spec_.scores.resize(spec_.tokens.size());
  }

  void ReadDecoder(const Json& decoder, bool& byte_level) {
    if (decoder.is_null()) return;
    std::string type = Text(decoder, "type", "");
    if (type == "Sequence") {
      for (const Json& each : Member(decoder, "decoders")) ReadDecoder(each, byte_level);
    } else if (type == "ByteLevel") {
      byte_level = true;
    } else if (type == "WordPiece") {
      spec_.add_space_prefix = true;
      spec_.clean_spaces = Flag(decoder, "cleanup", true);
    } else if (type == "Strip") {
      const Json& start = Member(decoder, "start");
      if (start.is_number_integer() && start.get<int64_t>() > 0 &&
          Text(decoder, "content", "") == " ")
        spec_.add_space_prefix = true;
    } else if (type == "Metaspace") {
      std::string scheme = Text(decoder, "prepend_scheme", "always");
      if (scheme != "never" && Flag(decoder, "add_prefix_space", true))
        spec_.add_space_prefix = true;
    } else if (type != "Replace" && type != "ByteFallback" && type != "Fuse") {
      Refuse(fmt::format("the decoder \"{}\"", type));
    }
  }

  static bool IsTokenId(const Json& id) {
    return id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
  }

  int32_t Special(const Json& processor, const char* name) {
    const Json& pair = Member(processor, name);
    if (!pair.is_array() || pair.size() != 2 || !IsTokenId(pair[1]))
      Bad("\"{}\" of the post-processor is not a token", name);
    return pair[1].get<int32_t>();
  }

  // The library would pass two texts to a second such step: the tokens inserted by the first one,
  // and the rest.
  void Surround(std::vector<text::TemplatePart> single, std::vector<text::TemplatePart> pair) {
    if (surrounded_) Refuse("a post-processor with two templates");
    surrounded_ = true;
    bool behind = false;
    for (const text::TemplatePart& part : single)
      if (part.id < 0)
        behind = true;
      else
        (behind ? spec_.after : spec_.before).push_back(part.id);
    spec_.single = std::move(single);
    spec_.pair = std::move(pair);
  }

  // The parts of a TemplateProcessing for one or two texts. What only pairs would need is not refused:
  // a pair then has no template.
  std::vector<text::TemplatePart> ReadTemplate(const Json& processor, const char* name) {
    std::vector<text::TemplatePart> parts;
    bool seen[2] = {};
    const bool pair = name == std::string_view("pair");
    for (const Json& each : Member(processor, name)) {
      const bool is_text = each.is_object() && each.contains("Sequence");
      const Json& part = Member(each, is_text ? "Sequence" : "SpecialToken");
      const std::string id = Text(part, "id", "");
      const Json& type = Member(part, "type_id");
      text::TemplatePart made{.type = type.is_number_unsigned() ? type.get<int32_t>() : 0};
      if (is_text) {
        if (id != "A" && !(pair && id == "B"))
          Bad("the template for a {} contains the text \"{}\"", pair ? "pair" : "single text", id);
        made.text = id == "B";
        if (std::exchange(seen[made.text], true)) {
          if (pair) return {};
          Refuse("a template that contains the text more than once");
        }
        parts.push_back(made);
        continue;
      }
      const Json& ids = Member(Member(Member(processor, "special_tokens"), id.c_str()), "ids");
      if (!ids.is_array()) Bad("the template's token \"{}\" has no \"ids\"", id);
      for (const Json& token : ids) {
        if (!IsTokenId(token)) Bad("a token id of the template is not an integer");
        made.id = token.get<int32_t>();
        parts.push_back(made);
      }
    }
    if (!seen[0] || (pair && !seen[1])) {
      if (pair) return {};
      Refuse("a template without the text");
    }
    return parts;
  }

  void ReadPostProcessor(const Json& processor) {
    if (processor.is_null()) return;
    std::string type = Text(processor, "type", "");
    if (type == "Sequence") {
      for (const Json& each : Member(processor, "processors")) ReadPostProcessor(each);
    } else if (type == "BertProcessing") {
      const text::TemplatePart cls{.id = Special(processor, "cls")},
          sep{.id = Special(processor, "sep")};
      Surround({cls, {}, sep}, {cls, {}, sep, {.text = 1, .type = 1}, {.id = sep.id, .type = 1}});
    } else if (type == "RobertaProcessing") {
      const text::TemplatePart cls{.id = Special(processor, "cls")},
          sep{.id = Special(processor, "sep")};
      Surround({cls, {}, sep}, {cls, {}, sep, sep, {.text = 1}, sep});
    } else if (type == "TemplateProcessing") {
      Surround(ReadTemplate(processor, "single"), ReadTemplate(processor, "pair"));
    } else if (type != "ByteLevel") {
      Refuse(fmt::format("the post-processor \"{}\"", type));
    }
  }

  // Some classes of transformers replace the template for single texts according to two settings
  // (update_post_processor in src/transformers/models/llama/tokenization_llama_fast.py).
  void ReadSwitches(const Json& config) {
    constexpr std::string_view kClasses[] = {"CodeLlamaTokenizer", "CohereTokenizer",
                                             "GemmaTokenizer", "LlamaTokenizer"};
    std::string name = Text(config, "tokenizer_class", "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    if (std::ranges::find(kClasses, name) == std::end(kClasses)) return;
    auto read = [&](const char* key, int32_t id, std::vector<int32_t>& side) {
      if (!Member(config, key).is_boolean()) return;
      side.clear();
      spec_.single.clear();
      if (Flag(config, key, false) && id >= 0) side.push_back(id);
    };
    read("add_bos_token", spec_.bos, spec_.before);
    read("add_eos_token", spec_.eos, spec_.after);
  }

  // tokenizer_config.json identifies special tokens by their text, or by objects that contain it.
  void ReadConfig(const Json& config) {
    const std::pair<const char*, int32_t*> ids[] = {
        {"bos_token", &spec_.bos}, {"eos_token", &spec_.eos}, {"sep_token", &spec_.sep},
        {"cls_token", &spec_.cls}, {"pad_token", &spec_.pad}, {"mask_token", &spec_.mask}};
    for (const auto& [name, id] : ids) {
      const Json& token = Member(config, name);
      std::string text = token.is_object() ? Text(token, "content", "") : Text(config, name, "");
      if (int32_t found = IdOf(text); found >= 0 && !text.empty()) *id = found;
    }
    // "Any length" is a number such as 1e30.
    if (const Json& most = Member(config, "model_max_length");
        most.is_number_unsigned() && most.get<uint64_t>() <= INT32_MAX)
      spec_.max_length = most.get<int64_t>();
    spec_.truncate_left = Text(config, "truncation_side", "right") == "left";
    ReadSwitches(config);
    // A file with several templates names them.
    const Json& chat = Member(config, "chat_template");
    if (chat.is_string()) {
      spec_.chat_template = chat.get<std::string>();
    } else if (chat.is_array()) {
      for (const Json& each : chat) {
        std::string text = Text(each, "template", "");
        if (spec_.chat_template.empty() || Text(each, "name", "") == "default")
          spec_.chat_template = text;
      }
    }
    const Json& ends = Member(config, "eos_token_id");
    auto add = [&](const Json& id) {
      if (id.is_number_unsigned() && id.get<uint64_t>() < spec_.tokens.size())
        spec_.ends.push_back(id.get<int32_t>());
    };
    if (ends.is_array()) {
      for (const Json& id : ends) add(id);
    } else {
      add(ends);
    }
  }

  const Json& file_;
  text::TokenizerSpec spec_;
  std::optional<std::string> unknown_;
  bool surrounded_ = false;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace

text::TokenizerSpec ParseHuggingFaceTokenizer(std::string_view tokenizer, std::string_view config,
                                              const std::string& file) {
  Json json = Parse(tokenizer, file);
  Json settings = config.empty() ? Json() : Parse(config, "tokenizer_config.json");
  try {
    return Reader(json).Read(settings);
  } catch (Error& error) {
    if (!error.has_location()) error.At({file, ""});
    throw;
  }
}

text::TokenizerSpec ReadHuggingFaceTokenizer(const fs::path& path, std::vector<fs::path>* files) {
  std::error_code ignored;
  bool is_folder = fs::is_directory(path, ignored);
  fs::path folder = is_folder ? path : path.parent_path();
  fs::path file = is_folder ? path / "tokenizer.json" : path;
  auto read = [&](const fs::path& from) {
    if (files) files->push_back(from);
    return ReadText(from);
  };
  std::string tokenizer = read(file);
  // A configuration next to a file with another name would belong to another model.
  if (file.filename() != "tokenizer.json")
    return ParseHuggingFaceTokenizer(tokenizer, "", file.string());
  return ParseHuggingFaceTokenizer(tokenizer, HuggingFaceTokenizerConfig(folder, files),
                                   file.string());
}

std::string HuggingFaceTokenizerConfig(const fs::path& folder, std::vector<fs::path>* files) {
  std::error_code ignored;
  auto read = [&](const char* name) -> std::string {
    fs::path path = folder / name;
    if (!fs::is_regular_file(path, ignored)) return {};
    if (files) files->push_back(path);
    return ReadText(path);
  };
  std::string config = read("tokenizer_config.json");
  std::string generation = read("generation_config.json");
  std::string chat = read("chat_template.jinja");
  Json json =
      config.empty() ? Json::object() : Parse(config, (folder / "tokenizer_config.json").string());
  if (!generation.empty()) {
    Json ends =
        Member(Parse(generation, (folder / "generation_config.json").string()), "eos_token_id");
    if (!ends.is_null()) json["eos_token_id"] = std::move(ends);
  }
  if (!chat.empty()) {
    RequireUtf8(chat, "bad-file", (folder / "chat_template.jinja").string());
    json["chat_template"] = chat;
  } else if (std::string whole = read("chat_template.json"); !whole.empty()) {
    // Processors of older folders of models that read pictures or sounds.
    Json text = Member(Parse(whole, (folder / "chat_template.json").string()), "chat_template");
    if (!text.is_null()) json["chat_template"] = std::move(text);
  }
  return json.empty() ? std::string() : json.dump();
}

}  // namespace mlc::safetensors
