#include "lib/text/pre_tokenizers.h"

#include "lib/support/error.h"

namespace mlc::text {
namespace {

// Common parts of several patterns.
const std::string kContractions = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const std::string kWhiteSpace = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kWords = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
const std::string kSigns = R"( ?[^\s\p{L}\p{N}]+)";
const std::string kHan =
    R"(\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f})"
    R"(\x{2b740}-\x{2b81f}\x{2b820}-\x{2ceaf}\x{2ceb0}-\x{2ebef}\x{f900}-\x{faff})"
    R"(\x{2f800}-\x{2fa1f})";

const std::string kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string kLlama3 =
    kContractions + "|" + kWords + R"(|\p{N}{1,3}|)" + kSigns + R"([\r\n]*|)" + kWhiteSpace;
const std::string kQwen2 =
    kContractions + "|" + kWords + R"(|\p{N}|)" + kSigns + R"([\r\n]*|)" + kWhiteSpace;
const std::string kDigit = R"(\p{N})";
const std::string kUpTo3Digits = R"(\p{N}{1,3})";
const std::string kLines = R"([^\n]+|\n+)";
// Letters by case. llama.cpp distinguishes case in ASCII only; other letters belong to both
// classes.
const std::string kUpper = R"([^\P{L}a-z])";
const std::string kLower = R"([^\P{L}A-Z])";
const std::string kTekken = R"([^\r\n\p{L}\p{N}]?)" + kUpper + "*" + kLower +
                            R"(+|[^\r\n\p{L}\p{N}]?)" + kUpper + "+" + kLower + R"(*|\p{N}|)" +
                            kSigns + R"([\r\n/]*|)" + kWhiteSpace;
const std::string kGpt4o = R"([^\r\n\p{L}\p{N}]?)" + kUpper + "*" + kLower + "+" + kContractions +
                           R"(?|[^\r\n\p{L}\p{N}]?)" + kUpper + "+" + kLower + "*" + kContractions +
                           R"(?|\p{N}{1,3}|)" + kSigns + R"([\r\n/]*|)" + kWhiteSpace;
// The same, including marks: (?=[\p{L}\p{M}])[^a-z].
const std::string kUpperOrMark = R"((?:(?![a-z])[\p{L}\p{M}]))";
const std::string kLowerOrMark = R"((?:(?![A-Z])[\p{L}\p{M}]))";
const std::string kGraniteEmbedding = R"([^\r\n\p{L}\p{N}]?)" + kUpperOrMark + "*" + kLowerOrMark +
                                      "+" + kContractions + R"(?|[^\r\n\p{L}\p{N}]?)" +
                                      kUpperOrMark + "+" + kLowerOrMark + "*" + kContractions +
                                      R"(?|\p{N}{1,3}|)" + kSigns + R"([\r\n/]*|)" + kWhiteSpace;
// Words of letters and marks, without distinction of case in llama.cpp.
const std::string kWordsWithMarks = R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)";
const std::string kTinyAya =
    kWordsWithMarks + kContractions + R"(?|\p{N}{1,3}|)" + kSigns + R"([\r\n/]*|)" + kWhiteSpace;
// Groups of three digits, counted from the end of a number; the first group includes the preceding
// character, as in llama.cpp (unicode_regex_split_custom_afmoe).
const std::string kGroupedDigits =
    R"(\P{N}*+(?:(?<!\p{N})\p{N}{1,2}(?=(?:\p{N}{3})++(?!\p{N}))|\p{N}{3}|\p{N}{1,2}|\z))";
const std::string kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" +
    kWhiteSpace;
const std::string kChineseJapanese = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)";
// Starts at U+0800, as in DeepSeek's own pattern. White space is excluded, because llama.cpp
// matches it only by \s (unicode_regex_split).
const std::string kDeepSeekAsian =
    R"([\x{800}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e})"
    R"(\x{2060}-\x{2fff}\x{3001}-\x{9fa5}\x{ac00}-\x{d7ff}]+)";
// Cased letters as of Unicode 11.
const std::string kDeepSeekLetters =
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d})"
    R"(\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3})"
    R"(\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d})"
    R"(\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184})"
    R"(\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d})"
    R"(\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf})"
    R"(\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f})"
    R"(\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2})"
    R"(\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
// White space and sentence-final punctuation of several scripts.
const std::string kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";

// names; patterns; ignore_merges; add_bos; spaces_escaped; has_bos
const std::vector<PreTokenizer> kRows = {
    {{"default", ""}, {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en",
      "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo",
      "jais", "exaone4", "trillion", "granite-docling"},
     {kGpt2}},
    {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
     {kDigit, kGpt2}},
    {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
      "jina-v5-nano"},
     {kLlama3},
     true,
     true},
    {{"dbrx", "smaug-bpe"}, {kLlama3}},
    {{"chatglm-bpe", "glm4"}, {kLlama3}, false, false, false, false},
    {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
      "solar-open", "grok-2"},
     {kQwen2}},
    {{"qwen35"},
     {kContractions + "|" + kWordsWithMarks + R"(|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" +
      kWhiteSpace}},
    {{"ufakzeka"}, {kWords + R"(|\p{N}|)" + kSigns + R"([\r\n]*|)" + kWhiteSpace}},
    {{"laguna"}, {kLines, kQwen2}},
    {{"minicpm5"},
     {kUpTo3Digits,
      kContractions + "|" + kWords + R"(|\p{N}+|)" + kSigns + R"([\r\n]*|)" + kWhiteSpace},
     true},
    {{"seed-coder"},
     {kContractions + "|" + kWords + R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" + kWhiteSpace}},
    {{"bailingmoe", "bailingmoe2", "llada-moe"},
     {R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|)" + kWords + R"(|\p{N}|)" + kSigns +
      R"([\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {{"exaone-moe"},
     {kContractions + R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)" +
      kSigns + R"([\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {{"jais-2"},
     {kContractions + "|" + kWords + R"(|\p{N}{1,3}|)" + kSigns +
      R"([\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
      R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"}},
    {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kGpt4o}},
    {{"granite-embed-multi-97m"}, {kGraniteEmbedding}, true},
    {{"tekken"}, {kTekken}, true, true},
    {{"tiny_aya", "cohere2moe"}, {kGroupedDigits, kTinyAya}},
    {{"afmoe"},
     {kGroupedDigits,
      R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f})"
      R"(\x{2f00}-\x{2fdf}\x{e40}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f})"
      R"(\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)",
      kDeepSeek3}},
    {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekAsian, kDigit}},
    {{"deepseek-llm"},
     {R"([\r\n])", kDeepSeekLetters,
      R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3001}\x{3002}]+)",
      R"((?<!\s)\s++$)", kDeepSeekAsian, R"(\p{N}+)"}},
    {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     {kUpTo3Digits, kChineseJapanese, kDeepSeek3}},
    {{"spark2_5"},
     {kUpTo3Digits, kChineseJapanese,
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
      R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
      kDigit}},
    {{"youtu"},
     {R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+)"
      R"(|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c})"
      R"(\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+)"
      R"(|[\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)",
      kWordsWithMarks + kContractions + R"(?|\p{N}|)" + kSigns + R"([\r\n/]*|)" + kWhiteSpace},
     true},
    {{"kimi-k2"},
     {"[" + kHan + R"(]+|[^\r\n\p{L}\p{N}]?[^\P{L})" + kHan + "]+" + kContractions +
      R"(?|\p{N}{1,3}|)" + kSigns + R"([\r\n]*|)" + kWhiteSpace}},
    {{"falcon"}, {R"([\p{P}$+<=>^~|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
    {{"poro-chat", "bloom", "gpt3-finnish"}, {kBloom}},
    {{"viking"}, {kBloom, kDigit}},
    {{"superbpe"}, {R"(\p{N}+)", R"((?<![0-9])[0-9]{1,2}(?=(?:[0-9]{3})++(?![0-9]))|[0-9]{3})"}},
    {{"chameleon"},
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", kDigit,
      R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
     false,
     true},
    {{"gemma4", "granite-embed-multi-311m"}, {kLines}, true, true, true},
    {{"sarvam-moe"}, {kLines}, false, false, true},
};

}  // namespace

const PreTokenizer& FindPreTokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizer& row : kRows)
    for (std::string_view other : row.names) {
      if (other == name) return row;
      if (!other.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", other);
    }
  throw Error("unsupported-tokenizer", "unsupported pre-tokenizer \"{}\"", name)
      .Expected("one of " + known)
      .Help(
          "add a row for it to lib/text/pre_tokenizers.cpp, with the regular expressions of its "
          "tokenizer.json");
}

std::vector<TextStep> Steps(const PreTokenizer& row) {
  std::vector<TextStep> steps;
  if (row.spaces_escaped)
    steps.push_back({.kind = TextStep::Kind::kReplace,
                     .pattern = " ",
                     .syntax = Syntax::kLiteral,
                     .content = "\u2581"});
  for (const std::string& pattern : row.patterns)
    steps.push_back({.kind = TextStep::Kind::kSplit, .pattern = pattern});
  return steps;
}

const std::vector<PreTokenizer>& PreTokenizers() { return kRows; }

}  // namespace mlc::text
