#include "frontends/safetensors/tokenizer_steps.h"

#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "lib/text/pre_tokenizers.h"

namespace mlc::safetensors {

using Json = nlohmann::json;
using Kind = text::TextStep::Kind;
using Cut = text::TextStep::Cut;

const Json& Member(const Json& object, const std::string& name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  auto member = object.find(name);
  return member == object.end() ? kNull : *member;
}

std::string Text(const Json& object, const std::string& name, const std::string& otherwise) {
  const Json& member = Member(object, name);
  if (member.is_null()) return otherwise;
  if (!member.is_string()) throw Error("bad-file", "\"{}\" is not a string", name);
  return member.get<std::string>();
}

bool Flag(const Json& object, const std::string& name, bool otherwise) {
  const Json& member = Member(object, name);
  if (member.is_null()) return otherwise;
  if (!member.is_boolean()) throw Error("bad-file", "\"{}\" is neither true nor false", name);
  return member.get<bool>();
}

namespace {

constexpr char kSpace[] = "\u2581";
// BERT's definition of punctuation, which includes all ASCII symbols.
constexpr char kPunctuation[] = R"([!-/:-@\[-`{-~\p{P}])";

std::string FromBase64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (c == '=') break;
    if (value < 0) throw Error("bad-file", "\"precompiled_charsmap\" is not valid Base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

// Accepts {"String": "..."}, {"Regex": "..."}, or a plain string.
void SetPattern(const Json& owner, text::TextStep& step) {
  const Json& pattern = Member(owner, "pattern");
  const Json& text = pattern.is_string() ? pattern : Member(pattern, "String");
  const Json& expression = Member(pattern, "Regex");
  if (!text.is_string() && !expression.is_string())
    throw Error("bad-file", "a {} has no \"pattern\"", Text(owner, "type", ""));
  step.pattern = (text.is_string() ? text : expression).get<std::string>();
  // An empty string matches everywhere, like an empty expression.
  step.syntax =
      text.is_string() && !step.pattern.empty() ? text::Syntax::kLiteral : text::Syntax::kOniguruma;
}

Cut CutOf(const std::string& behavior) {
  constexpr std::pair<const char*, Cut> kRows[] = {{"Isolated", Cut::kIsolated},
                                                   {"Removed", Cut::kRemoved},
                                                   {"MergedWithPrevious", Cut::kWithPrevious},
                                                   {"MergedWithNext", Cut::kWithNext},
                                                   {"Contiguous", Cut::kContiguous}};
  for (const auto& [name, cut] : kRows)
    if (behavior == name) return cut;
  throw Error("unsupported-tokenizer", "unsupported behavior \"{}\"", behavior)
      .Expected("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

const Json& Elements(const Json& sequence, const char* name) {
  const Json& list = Member(sequence, name);
  if (!list.is_array()) throw Error("bad-file", "a Sequence has no \"{}\"", name);
  return list;
}

void AddMetaspace(const Json& part, text::TokenizerSpec& spec) {
  std::string replacement = Text(part, "replacement", kSpace);
  std::string scheme =
      Text(part, "prepend_scheme", Flag(part, "add_prefix_space", true) ? "always" : "never");
  spec.steps.push_back({.kind = Kind::kReplace,
                        .pattern = " ",
                        .syntax = text::Syntax::kLiteral,
                        .content = replacement});
  if (scheme != "never")
    spec.steps.push_back({.kind = Kind::kPrepend,
                          .content = replacement,
                          .first_only = scheme == "first",
                          .unless_there = true});
  if (Flag(part, "split", true))
    spec.steps.push_back({.kind = Kind::kSplit,
                          .pattern = replacement,
                          .syntax = text::Syntax::kLiteral,
                          .cut = Cut::kWithNext});
}

}  // namespace

void AddNormalizers(const Json& part, std::vector<text::TextStep>& steps) {
  if (part.is_null()) return;
  constexpr std::pair<const char*, Kind> kPlain[] = {{"NFC", Kind::kNfc},
                                                     {"NFD", Kind::kNfd},
                                                     {"NFKC", Kind::kNfkc},
                                                     {"NFKD", Kind::kNfkd},
                                                     {"Lowercase", Kind::kLowercase}};
  std::string type = Text(part, "type", "");
  for (const auto& [name, kind] : kPlain)
    if (type == name) {
      steps.push_back({.kind = kind});
      return;
    }
  auto replace = [&](const char* pattern, const char* content) {
    steps.push_back({.kind = Kind::kReplace, .pattern = pattern, .content = content});
  };
  if (type == "StripAccents") {
    replace(R"(\p{M})", "");
  } else if (type == "Sequence") {
    for (const Json& each : Elements(part, "normalizers")) AddNormalizers(each, steps);
  } else if (type == "BertNormalizer") {
    bool lowercase = Flag(part, "lowercase", true);
    if (Flag(part, "clean_text", true)) {
      replace(R"((?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\x{0}\x{fffd}])", "");
      replace(R"(\s)", " ");
    }
    if (Flag(part, "handle_chinese_chars", true)) steps.push_back({.kind = Kind::kSpaceIdeographs});
    if (Flag(part, "strip_accents", lowercase)) {
      steps.push_back({.kind = Kind::kNfd});
      steps.push_back({.kind = Kind::kStripAccents});
    }
    if (lowercase) steps.push_back({.kind = Kind::kLowercase});
  } else if (type == "Prepend") {
    steps.push_back({.kind = Kind::kPrepend, .content = Text(part, "prepend", "")});
  } else if (type == "Replace") {
    text::TextStep step{.kind = Kind::kReplace, .content = Text(part, "content", "")};
    SetPattern(part, step);
    steps.push_back(std::move(step));
  } else if (type == "Precompiled") {
    steps.push_back(
        {.kind = Kind::kCharsmap, .content = FromBase64(Text(part, "precompiled_charsmap", ""))});
  } else if (type == "Strip") {
    steps.push_back({.kind = Kind::kStrip,
                     .left = Flag(part, "strip_left", true),
                     .right = Flag(part, "strip_right", true)});
  } else {
    throw Error("unsupported-tokenizer", "unsupported normalizer \"{}\"", type)
        .Expected(
            "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, BertNormalizer, Prepend, "
            "Replace, Precompiled or Strip");
  }
}

void AddPreTokenizers(const Json& part, text::TokenizerSpec& spec, bool& byte_level) {
  if (part.is_null()) return;
  std::string type = Text(part, "type", "");
  auto split = [&](std::string pattern, Cut cut, bool invert = false) {
    spec.steps.push_back(
        {.kind = Kind::kSplit, .pattern = std::move(pattern), .cut = cut, .invert = invert});
  };
  if (type == "Sequence") {
    for (const Json& each : Elements(part, "pretokenizers"))
      AddPreTokenizers(each, spec, byte_level);
  } else if (type == "ByteLevel") {
    byte_level = true;
    if (Flag(part, "add_prefix_space", true)) {
      spec.steps.push_back({.kind = Kind::kPrepend, .content = " ", .unless_there = true});
      spec.add_space_prefix = true;
    }
    if (Flag(part, "use_regex", true)) {
      std::vector<text::TextStep> steps = text::Steps(text::FindPreTokenizer("gpt-2"));
      spec.steps.insert(spec.steps.end(), steps.begin(), steps.end());
    }
  } else if (type == "Split") {
    text::TextStep step{.kind = Kind::kSplit,
                        .cut = CutOf(Text(part, "behavior", "Isolated")),
                        .invert = Flag(part, "invert", false)};
    SetPattern(part, step);
    spec.steps.push_back(std::move(step));
  } else if (type == "Metaspace") {
    AddMetaspace(part, spec);
  } else if (type == "BertPreTokenizer") {
    split(R"(\s)", Cut::kRemoved);
    split(kPunctuation, Cut::kIsolated);
  } else if (type == "Whitespace") {
    // The definitions of \w and \s are Rust's, not Oniguruma's.
    const std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})";
    split("[" + word + "]+|[^" + word + R"(\s]+)", Cut::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    split(R"(\s)", Cut::kRemoved);
  } else if (type == "Digits") {
    split(R"(\p{N})", Flag(part, "individual_digits", false) ? Cut::kIsolated : Cut::kContiguous);
  } else if (type == "Punctuation") {
    split(kPunctuation, CutOf(Text(part, "behavior", "Isolated")));
  } else {
    throw Error("unsupported-tokenizer", "unsupported pre-tokenizer \"{}\"", type)
        .Expected(
            "Sequence, ByteLevel, Split, Metaspace, BertPreTokenizer, Whitespace, "
            "WhitespaceSplit, Digits or Punctuation");
  }
}

}  // namespace mlc::safetensors
