#include "frontends/safetensors/tokenizer_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/utf8.h"
#include "lib/text/unicode.h"

namespace mlc::safetensors {

namespace {

using Json = nlohmann::ordered_json;
using Kind = text::TextStep::Kind;
using text::TokenizerKind;
using text::TokenType;

constexpr char kSpaceMark[] = "\u2581";

[[noreturn]] void RefuseStep(std::string_view what) {
  throw Error("unsupported-tokenizer", "tokenizer.json cannot express {}", what);
}

std::string ToBase64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      text.push_back(at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

Json Literal(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}
Json Expression(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
}
Json Prepend(std::string_view text) { return {{"type", "Prepend"}, {"prepend", text}}; }

// One component stands for itself; several form a Sequence.
Json Sequence(Json parts, const char* name) {
  if (parts.empty()) return nullptr;
  if (parts.size() == 1) return parts[0];
  return {{"type", "Sequence"}, {name, std::move(parts)}};
}

class Writer {
 public:
  explicit Writer(const text::TokenizerSpec& spec) : spec_(spec) {
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      if (FirstBadUtf8(spec.tokens[id]) == std::string_view::npos)
        ids_[Spelled(id)] = static_cast<int32_t>(id);
  }

  HuggingFaceTexts Write() const {
    const auto steps = Steps();
    const std::pair<const char*, std::string> members[] = {
        {"version", "\"1.0\""},
        {"truncation", "null"},
        {"padding", "null"},
        {"added_tokens", AddedTokens().dump()},
        {"normalizer", steps.first.dump()},
        {"pre_tokenizer", steps.second.dump()},
        {"post_processor", PostProcessor().dump()},
        {"decoder", Decoder().dump()},
        {"model", Model()}};
    HuggingFaceTexts texts{.tokenizer = "{", .config = JsonText(Config())};
    for (const auto& [name, value] : members)
      texts.tokenizer +=
          fmt::format("{}\n  \"{}\": {}", texts.tokenizer.size() > 1 ? "," : "", name, value);
    texts.tokenizer += "\n}\n";
    return texts;
  }

 private:
  TokenType TypeOf(size_t id) const {
    return spec_.types.empty() ? TokenType::kNormal : spec_.types[id];
  }

  // GGUF marks the words of a BERT vocabulary that begin with a space; tokenizer.json marks the
  // others. Texts in brackets have no mark in either (convert_hf_to_gguf.py of llama.cpp).
  std::string Spelled(size_t id) const {
    const std::string& text = spec_.tokens[id];
    if (spec_.kind != TokenizerKind::kWordPiece) return text;
    if (text.starts_with(kSpaceMark)) return text.substr(sizeof(kSpaceMark) - 1);
    const bool bracketed = text.starts_with('[') && text.ends_with(']');
    return bracketed || TypeOf(id) != TokenType::kNormal ? text : "##" + text;
  }
  std::string TextOf(int32_t id) const { return Spelled(static_cast<size_t>(id)); }
  // Returns whether the vocabulary of tokenizer.json has the token: it has one token for each text.
  bool Listed(size_t id) const {
    auto found = ids_.find(Spelled(id));
    return found != ids_.end() && found->second == static_cast<int32_t>(id);
  }

  Json AddedTokens() const {
    Json list = Json::array();
    std::unordered_map<int32_t, const text::AddedToken*> flags;
    for (const text::AddedToken& token : spec_.added) flags[token.id] = &token;
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      const TokenType type = TypeOf(id);
      const auto found = flags.find(static_cast<int32_t>(id));
      const bool special = type == TokenType::kControl || type == TokenType::kUnknown;
      if (!special && type != TokenType::kUserDefined && found == flags.end()) continue;
      if (!Listed(id)) continue;
      const text::AddedToken how = found == flags.end() ? text::AddedToken{} : *found->second;
      list.push_back({{"id", id},
                      {"content", Spelled(id)},
                      {"single_word", how.single_word},
                      {"lstrip", how.left_strip},
                      {"rstrip", how.right_strip},
                      {"normalized", how.normalized},
                      {"special", special}});
    }
    return list;
  }

  bool Has(Kind kind) const {
    return std::ranges::any_of(spec_.steps,
                               [&](const text::TextStep& step) { return step.kind == kind; });
  }

  // Returns the normalizer and the pre-tokenizer.
  std::pair<Json, Json> Steps() const {
    if (spec_.kind == TokenizerKind::kWordPiece)
      return {{{"type", "BertNormalizer"},
               {"clean_text", true},
               {"handle_chinese_chars", true},
               {"strip_accents", Has(Kind::kBaseCharacters)},
               {"lowercase", Has(Kind::kLowercase)}},
              {{"type", "BertPreTokenizer"}}};
    Json normalizers = Json::array(), cuts = Json::array();
    for (const text::TextStep& step : spec_.steps) {
      if (!cuts.empty() && step.kind != Kind::kSplit)
        RefuseStep("a change of the text after it is split");
      switch (step.kind) {
        case Kind::kReplace:
          normalizers.push_back(step.syntax == text::Syntax::kLiteral
                                    ? Literal(step.pattern, step.content)
                                    : Expression(step.pattern, step.content));
          break;
        case Kind::kPrepend:
          normalizers.push_back(Prepend(step.content));
          break;
        case Kind::kCharsmap:
          if (!step.content.empty())
            normalizers.push_back(
                {{"type", "Precompiled"}, {"precompiled_charsmap", ToBase64(step.content)}});
          break;
        case Kind::kSpaces:
          AddSpaces(step, normalizers);
          break;
        case Kind::kSplit:
          // The patterns of lib/text mean the same in PCRE2, Oniguruma and ICU.
          cuts.push_back({{"type", "Split"},
                          {"pattern", {{"Regex", step.pattern}}},
                          {"behavior", "Isolated"},
                          {"invert", false}});
          break;
        default:
          RefuseStep("a step of its normalization");
      }
    }
    if (spec_.kind == TokenizerKind::kByteBpe && spec_.byte_encoded)
      cuts.push_back({{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}});
    return {Sequence(std::move(normalizers), "normalizers"),
            Sequence(std::move(cuts), "pretokenizers")};
  }

  // Text of spaces alone gets no prefix.
  static void AddSpaces(const text::TextStep& step, Json& normalizers) {
    if (step.merge) {
      normalizers.push_back(Expression(R"(\A +| +\z)", ""));
      normalizers.push_back(Expression(" +", step.content));
      normalizers.push_back(Prepend(step.content));
      return;
    }
    if (step.left) {
      normalizers.push_back(Prepend(" "));
      normalizers.push_back(Expression(R"(\A (?= *\z))", ""));
    }
    normalizers.push_back(Literal(" ", step.content));
  }

  // The tokens before and after a text.
  std::pair<int32_t, int32_t> Around() const {
    const bool words = spec_.kind == TokenizerKind::kWordPiece;
    return {spec_.add_bos ? spec_.bos : -1, !spec_.add_eos            ? -1
                                            : words && spec_.sep >= 0 ? spec_.sep
                                                                      : spec_.eos};
  }

  Json PostProcessor() const {
    const auto [first, last] = Around();
    if (first < 0 && last < 0) return nullptr;
    Json tokens = Json::object();
    auto token = [&](int32_t id, int type, Json& list) {
      if (id < 0) return;
      const std::string text = TextOf(id);
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    };
    Json single = Json::array();
    token(first, 0, single);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    token(last, 0, single);
    Json pair = Json::array();
    for (const text::TemplatePart& part : text::PairTemplate(spec_))
      if (part.id < 0)
        pair.push_back(
            {{"Sequence", {{"id", part.text == 0 ? "A" : "B"}, {"type_id", part.type}}}});
      else
        token(part.id, part.type, pair);
    // The format requires a template for pairs: that of Llama.
    if (pair.empty()) {
      pair = single;
      token(first, 1, pair);
      pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
      token(last, 1, pair);
    }
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(tokens)}};
  }

  Json Decoder() const {
    if (spec_.kind == TokenizerKind::kWordPiece)
      return {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", spec_.clean_spaces}};
    if (spec_.kind == TokenizerKind::kByteBpe && spec_.byte_encoded)
      return {{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", true}};
    Json parts =
        Json::array({Literal(kSpaceMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
    if (spec_.add_space_prefix)
      parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {{"type", "Sequence"}, {"decoders", std::move(parts)}};
  }

  // The unknown token as the value of "unk_token".
  Json Unknown() const {
    return spec_.unk >= 0 && Listed(static_cast<size_t>(spec_.unk)) ? Json(TextOf(spec_.unk))
                                                                    : Json(nullptr);
  }

  // A list of millions of members is text: an ordered_json object searches its members in turn.
  std::string Model() const {
    switch (spec_.kind) {
      case TokenizerKind::kUnigram:
        return UnigramModel();
      case TokenizerKind::kWordPiece:
        return fmt::format(
            R"({{"type": "WordPiece", "unk_token": {}, "continuing_subword_prefix": "##", )"
            R"("max_input_chars_per_word": 100, "vocab": {}}})",
            Unknown().dump(), Vocabulary());
      case TokenizerKind::kSpmBpe:
      case TokenizerKind::kByteBpe:
        break;
    }
    const bool bytes = spec_.kind == TokenizerKind::kSpmBpe || !spec_.byte_encoded;
    return fmt::format(
        R"({{"type": "BPE", "dropout": null, "unk_token": {}, "continuing_subword_prefix": null, )"
        R"("end_of_word_suffix": null, "fuse_unk": {}, "byte_fallback": {}, "ignore_merges": {}, )"
        R"("vocab": {}, "merges": {}}})",
        (bytes ? Unknown() : Json(nullptr)).dump(), bytes, bytes && spec_.byte_fallback,
        spec_.ignore_merges, Vocabulary(), Merges());
  }

  std::string Vocabulary() const {
    std::string text = "{";
    for (size_t id = 0; id < spec_.tokens.size(); ++id)
      if (Listed(id))
        text +=
            fmt::format("{}\n    {}: {}", text.size() > 1 ? "," : "", Json(Spelled(id)).dump(), id);
    return text + "}";
  }

  // Tokens are identified by their place in the list, and swift-transformers ends an app whose
  // vocabulary has two tokens with the same text.
  std::string UnigramModel() const {
    std::string text = "[";
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      const std::string token = Listed(id) ? Spelled(id) : fmt::format("[UNUSED_{}]", id);
      const double score = spec_.scores.empty() || TypeOf(id) == TokenType::kUserDefined
                               ? 0
                               : static_cast<double>(spec_.scores[id]);
      text += fmt::format("{}\n    [{}, {}]", id > 0 ? "," : "", Json(token).dump(),
                          Json(score).dump());
    }
    return fmt::format(R"({{"type": "Unigram", "unk_id": {}, "byte_fallback": {}, "vocab": {}]}})",
                       spec_.unk >= 0 ? Json(spec_.unk).dump() : "null", spec_.byte_fallback, text);
  }

  using Pair = std::pair<std::string_view, std::string_view>;

  std::string Merges() const {
    std::string text = "[";
    for (const auto& [left, right] :
         spec_.kind == TokenizerKind::kSpmBpe ? MergesOfScores() : GivenMerges())
      text += fmt::format("{}\n    [{}, {}]", text.size() > 1 ? "," : "", Json(left).dump(),
                          Json(right).dump());
    return text + "]";
  }

  // The merges between tokens that lead to a token.
  std::vector<Pair> GivenMerges() const {
    std::vector<Pair> merges;
    auto is_token = [&](const std::string& text) { return ids_.contains(text); };
    for (const auto& [left, right] : spec_.merges)
      if (is_token(left) && is_token(right) && is_token(left + right))
        merges.emplace_back(left, right);
    return merges;
  }

  // SentencePiece merges any two symbols whose concatenation is a token, the highest score first
  // (generate_merges in src/transformers/convert_slow_tokenizer.py makes the same list).
  std::vector<Pair> MergesOfScores() const {
    struct Merge {
      float score;
      Pair parts;
    };
    std::vector<Merge> merges;
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      const std::string_view token = spec_.tokens[id];
      if (!Listed(id) || TypeOf(id) == TokenType::kByte) continue;
      // The pair with the longest beginning is merged before others with the same result.
      for (size_t at = token.size(); at-- > 1;) {
        if ((token[at] & 0xc0) == 0x80) continue;  // inside of a character
        const std::string_view left = token.substr(0, at), right = token.substr(at);
        if (ids_.contains(std::string(left)) && ids_.contains(std::string(right)))
          merges.push_back({spec_.scores.empty() ? 0 : spec_.scores[id], {left, right}});
      }
    }
    std::ranges::stable_sort(merges,
                             [](const Merge& a, const Merge& b) { return a.score > b.score; });
    std::vector<Pair> pairs;
    pairs.reserve(merges.size());
    for (const Merge& merge : merges) pairs.push_back(merge.parts);
    return pairs;
  }

  // swift-transformers finds the model by the class: those without an algorithm of their own are
  // BPE (Sources/Tokenizers/Tokenizer.swift, knownTokenizers).
  Json Config() const {
    const bool words = spec_.kind == TokenizerKind::kWordPiece;
    Json config = {{"tokenizer_class", words ? "BertTokenizer"
                                       : spec_.kind == TokenizerKind::kUnigram
                                           ? "T5Tokenizer"
                                           : "PreTrainedTokenizerFast"}};
    auto set = [&](const char* name, int32_t id) {
      if (id < 0) return;
      // llama.cpp assumes the ids of GPT-2 if a file has none, and they may be those of words.
      if (spec_.kind == TokenizerKind::kByteBpe && !spec_.types.empty() &&
          TypeOf(static_cast<size_t>(id)) == TokenType::kNormal)
        return;
      if (Listed(static_cast<size_t>(id))) config[name] = TextOf(id);
    };
    if (!words) set("bos_token", spec_.bos);
    set("eos_token", spec_.eos);
    set("unk_token", spec_.unk);
    set("sep_token", spec_.sep);
    set("pad_token", spec_.pad);
    set("cls_token", words && spec_.cls < 0 ? spec_.bos : spec_.cls);
    set("mask_token", spec_.mask);
    config["clean_up_tokenization_spaces"] = spec_.clean_spaces;
    if (words) {
      config["do_lower_case"] = Has(Kind::kLowercase);
      config["strip_accents"] = Has(Kind::kBaseCharacters);
      config["tokenize_chinese_chars"] = true;
    } else {
      config["model_input_names"] = {"input_ids", "attention_mask"};
    }
    if (spec_.kind == TokenizerKind::kUnigram) config["extra_ids"] = 0;
    Json ends = Json::array();
    std::vector<int32_t> all = {spec_.eos, spec_.eot};
    all.insert(all.end(), spec_.ends.begin(), spec_.ends.end());
    for (int32_t id : all)
      if (id >= 0 && std::ranges::find(ends, Json(id)) == ends.end()) ends.push_back(id);
    if (!ends.empty()) config["eos_token_id"] = std::move(ends);
    if (!spec_.chat_template.empty())
      config["chat_template"] = text::ValidUtf8(spec_.chat_template);
    return config;
  }

  const text::TokenizerSpec& spec_;
  std::unordered_map<std::string, int32_t> ids_;  // by text as spelled in tokenizer.json
};

}  // namespace

HuggingFaceTexts WriteHuggingFaceTokenizer(const text::TokenizerSpec& spec) {
  return Writer(spec).Write();
}

}  // namespace mlc::safetensors
