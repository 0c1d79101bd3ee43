#include "frontends/gguf/tokenizer.h"

#include "lib/support/error.h"
#include "lib/text/pre_tokenizers.h"

namespace mlc::gguf {
namespace {

using Kind = text::TextStep::Kind;

constexpr char kPrefix[] = "tokenizer.ggml.";

std::string Key(std::string_view name) { return fmt::format("{}{}", kPrefix, name); }

// The values of tokenizer.ggml.model and their defaults for missing keys (llama.cpp's
// llama-vocab.cpp).
struct Row {
  std::string_view model;
  text::TokenizerKind kind;
  bool add_bos, add_eos, add_space_prefix;
  int32_t bos, eos, unk, sep, pad, mask;
};
constexpr Row kRows[] = {
    {"llama", text::TokenizerKind::kSpmBpe, true, false, true, 1, 2, 0, -1, -1, -1},
    {"t5", text::TokenizerKind::kUnigram, false, true, true, -1, 1, 2, -1, 0, -1},
    {"bert", text::TokenizerKind::kWordPiece, true, true, false, 101, -1, 100, 102, 0, 103},
    {"gpt2", text::TokenizerKind::kByteBpe, false, false, false, 11, 11, -1, -1, -1, -1},
    {"gemma4", text::TokenizerKind::kByteBpe, false, false, false, -1, -1, -1, -1, -1, -1},
};

const Row& FindRow(const std::string& model) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.model == model) return row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.model);
  }
  throw Error("unsupported-tokenizer", "unsupported tokenizer \"{}\"", model)
      .Expected("one of " + known);
}

text::TextStep Escape() {
  return {.kind = Kind::kReplace,
          .pattern = " ",
          .syntax = text::Syntax::kLiteral,
          .content = "\u2581"};
}

std::vector<text::TextStep> BertSteps(bool lowercase, bool strip_accents) {
  std::vector<text::TextStep> steps;
  if (strip_accents) steps.push_back({.kind = Kind::kBaseCharacters});
  steps.push_back({.kind = Kind::kClean});
  if (lowercase) steps.push_back({.kind = Kind::kLowercase});
  // White space is removed; punctuation, ASCII symbols and Chinese characters are separate words.
  steps.push_back({.kind = Kind::kSplit, .pattern = " +", .cut = text::TextStep::Cut::kRemoved});
  steps.push_back({.kind = Kind::kSplit,
                   .pattern = R"([\p{P}$+<=>^`|~\x{4e00}-\x{9fff}\x{3400}-\x{4dbf})"
                              R"(\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f}\x{2b740}-\x{2b81f})"
                              R"(\x{2b920}-\x{2ceaf}\x{f900}-\x{faff}\x{2f800}-\x{2fa1f}])"});
  return steps;
}

std::string Bytes(const GgufFile& file, const std::string& key) {
  std::string bytes;
  if (!file.Has(key)) return bytes;
  for (int64_t value : file.Ints(key)) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Reads the token id of a key; leaves `id` unchanged if the file has no such token.
void ReadId(const GgufFile& file, std::string_view name, size_t count, int32_t& id) {
  if (id >= static_cast<int64_t>(count)) id = -1;
  int64_t given = file.Int(Key(name), -1);
  if (given >= 0 && given < static_cast<int64_t>(count)) id = static_cast<int32_t>(given);
}

// Converts ASCII letters to lower case.
std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Sets properties that GGUF has no field for; llama.cpp derives them from the model's name.
void ReadStripping(const GgufFile& file, text::TokenizerSpec& spec) {
  std::string name = Lower(file.String("general.name", ""));
  std::string architecture = file.String("general.architecture", "");
  auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  auto add = [&](std::string_view text, bool left, bool right) {
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      if (spec.tokens[id] == text) spec.added.push_back({static_cast<int32_t>(id), left, right});
  };
  if (has(spec.pre_tokenizer, "jina-v2-") || has(architecture, "nomic-bert-moe") ||
      has(architecture, "jina-bert-v3")) {
    add("<mask>", true, false);
  } else if (has(name, "phi-3") || has(name, "phi3")) {
    for (size_t id = 0; id < spec.types.size(); ++id) {
      text::TokenType type = spec.types[id];
      const std::string& text = spec.tokens[id];
      bool special = type == text::TokenType::kControl || type == text::TokenType::kUserDefined ||
                     type == text::TokenType::kUnknown;
      if (special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>")
        spec.added.push_back({static_cast<int32_t>(id), false, true});
    }
  } else if (has(name, "modern-bert")) {
    add("[MASK]", true, false);
  }
}

}  // namespace

bool HasTokenizer(const GgufFile& file) {
  const std::string model = file.String(Key("model"), "none");
  return model != "none" && model != "no_vocab" && file.Has(Key("tokens"));
}

text::TokenizerSpec ReadGgufTokenizer(const GgufFile& file) {
  if (!file.Has(Key("model")))
    throw Error("unsupported-tokenizer", "the file has no tokenizer")
        .Expected("key \"{}\"", Key("model"))
        .Help("convert the model with its vocabulary");
  std::string model = file.String(Key("model"));
  const Row& row = FindRow(model);
  text::TokenizerSpec spec;
  spec.kind = row.kind;
  spec.add_bos = row.add_bos;
  spec.add_eos = row.add_eos;
  spec.tokens = file.Strings(Key("tokens"));
  size_t count = spec.tokens.size();
  if (file.Has(Key("scores"))) {
    bool whole = file.Find(Key("scores"))->element == GgufType::kInt32;
    if (whole) {
      for (int64_t score : file.Ints(Key("scores")))
        spec.scores.push_back(static_cast<float>(score));
    } else {
      for (double score : file.Floats(Key("scores")))
        spec.scores.push_back(static_cast<float>(score));
    }
    if (spec.scores.size() > count) spec.scores.resize(count);
  }
  if (file.Has(Key("token_type"))) {
    for (int64_t type : file.Ints(Key("token_type")))
      spec.types.push_back(type >= 1 && type <= 6 ? static_cast<text::TokenType>(type)
                                                  : text::TokenType::kUnused);
    if (spec.types.size() > count) spec.types.resize(count);
  }

  spec.bos = row.bos, spec.eos = row.eos, spec.unk = row.unk;
  spec.sep = row.sep, spec.pad = row.pad, spec.mask = row.mask;
  bool add_space_prefix = file.Bool(Key("add_space_prefix"), row.add_space_prefix);
  switch (row.kind) {
    case text::TokenizerKind::kSpmBpe:
      spec.add_space_prefix = add_space_prefix;
      if (add_space_prefix) spec.steps.push_back({.kind = Kind::kPrepend, .content = " "});
      spec.steps.push_back(Escape());
      break;
    case text::TokenizerKind::kUnigram:
      spec.add_space_prefix = add_space_prefix;
      spec.byte_fallback = false;
      spec.steps.push_back(
          {.kind = Kind::kCharsmap, .content = Bytes(file, Key("precompiled_charsmap"))});
      spec.steps.push_back({.kind = Kind::kSpaces,
                            .content = "\u2581",
                            .left = add_space_prefix,
                            .right = false,
                            .merge = file.Bool(Key("remove_extra_whitespaces"), false)});
      break;
    case text::TokenizerKind::kWordPiece: {
      bool lowercase = file.Bool(Key("normalizer.lowercase"), true);
      spec.steps = BertSteps(lowercase, file.Bool(Key("normalizer.strip_accents"), lowercase));
      spec.add_space_prefix = spec.clean_spaces = true;
      break;
    }
    case text::TokenizerKind::kByteBpe: {
      spec.pre_tokenizer = model == "gemma4" ? model : file.String(Key("pre"), "");
      const text::PreTokenizer& pre = text::FindPreTokenizer(spec.pre_tokenizer);
      spec.steps = text::Steps(pre);
      spec.ignore_merges = pre.ignore_merges;
      spec.add_bos |= pre.add_bos;
      spec.byte_encoded = !pre.spaces_escaped;
      if (!pre.has_bos) spec.bos = -1;
      for (const std::string& merge : file.Strings(Key("merges"))) {
        size_t space = merge.find(' ', 1);
        if (space != std::string::npos)
          spec.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
      }
      break;
    }
  }
  ReadId(file, "bos_token_id", count, spec.bos);
  ReadId(file, "eos_token_id", count, spec.eos);
  ReadId(file, "eot_token_id", count, spec.eot);
  ReadId(file, "unknown_token_id", count, spec.unk);
  ReadId(file, "seperator_token_id", count, spec.sep);  // the spelling of GGUF
  ReadId(file, "padding_token_id", count, spec.pad);
  ReadId(file, "cls_token_id", count, spec.cls);
  ReadId(file, "mask_token_id", count, spec.mask);
  int32_t eom = -1;
  ReadId(file, "eom_token_id", count, eom);
  if (eom >= 0) spec.ends.push_back(eom);
  if (row.kind != text::TokenizerKind::kWordPiece) {
    spec.add_bos = file.Bool(Key("add_bos_token"), spec.add_bos);
    spec.add_eos = file.Bool(Key("add_eos_token"), spec.add_eos);
    if (spec.pre_tokenizer == "gemma4")
      spec.add_bos = true;  // overrides files, which have the wrong value
  }
  spec.chat_template = file.String("tokenizer.chat_template", "");
  ReadStripping(file, spec);
  return spec;
}

}  // namespace mlc::gguf
