#include "lib/text/text_steps.h"

#include <algorithm>
#include <cmath>

#include "lib/text/charsmap.h"
#include "lib/text/pre_tokenizers.h"
#include "test/expected_error.h"

namespace mlc::text {
namespace {

using test::Refusal;
using test::RefusalId;

using Kind = TextStep::Kind;
using Cut = TextStep::Cut;

// Returns the pieces, separated by "|".
std::string Applied(const std::vector<TextStep>& steps, std::string text, bool begins_text = true) {
  TextPieces pieces{std::move(text), {}, begins_text};
  pieces.ranges.push_back({0, pieces.text.size()});
  TextSteps(steps).Apply(pieces);
  std::string joined;
  for (size_t i = 0; i < pieces.ranges.size(); ++i)
    joined += (i ? "|" : "") + pieces.text.substr(pieces.ranges[i].begin,
                                                  pieces.ranges[i].end - pieces.ranges[i].begin);
  return joined;
}

TEST_CASE("text steps: normalization forms, lower case, accents", "[text]") {
  CHECK(Applied({{.kind = Kind::kNfc}}, "e\u0301") == "é");
  CHECK(Applied({{.kind = Kind::kNfd}}, "é\uac01") == "e\u0301\u1100\u1161\u11a8");
  CHECK(Applied({{.kind = Kind::kNfkc}}, "\ufb01\u00bd\u3000") == "fi1\u20442 ");
  CHECK(Applied({{.kind = Kind::kNfkd}}, "\ufb01é") == "fie\u0301");
  CHECK(Applied({{.kind = Kind::kLowercase}}, "AÉЖ") == "aéж");
  // SpecialCasing.txt: one character becomes two; a final sigma gets no special form.
  CHECK(Applied({{.kind = Kind::kLowercase}}, "İΣ") == "i\u0307σ");
  CHECK(Applied({{.kind = Kind::kNfd}, {.kind = Kind::kStripAccents}}, "éàx") == "eax");
  // llama.cpp keeps only the first consonant of a syllable and removes marks of all kinds.
  CHECK(Applied({{.kind = Kind::kBaseCharacters}}, "é\uac01\u093f") == "e\u1100");
  CHECK(Applied({{.kind = Kind::kClean}}, std::string("a\tb\0\x01\ufffd\u00adc", 11)) == "a bc");
  CHECK(Applied({{.kind = Kind::kSpaceIdeographs}}, "a中b") == "a 中 b");
}

TEST_CASE("text steps: invalid UTF-8 becomes U+FFFD if the model needs characters", "[text]") {
  CHECK(Applied({{.kind = Kind::kNfc}}, "a\xff\xe4") == "a\ufffd\ufffd");
  CHECK(Applied(
            {{.kind = Kind::kReplace, .pattern = " ", .syntax = Syntax::kLiteral, .content = "_"}},
            "\xff ") == "\xff_");
}

TEST_CASE("text steps: replace, prepend, strip", "[text]") {
  CHECK(Applied({{.kind = Kind::kReplace, .pattern = " {2,}", .content = " "}}, "a   b") == "a b");
  TextStep prepend{.kind = Kind::kPrepend, .content = "_", .unless_there = true};
  CHECK(Applied({prepend}, "a") == "_a");
  CHECK(Applied({prepend}, "_a") == "_a");
  CHECK(Applied({prepend}, "").empty());
  prepend.first_only = true;
  CHECK(Applied({prepend}, "a", false) == "a");
  CHECK(Applied({{.kind = Kind::kSplit, .pattern = " ", .cut = Cut::kRemoved}, prepend}, "a b") ==
        "_a|b");
  CHECK(Applied({{.kind = Kind::kSplit, .pattern = " ", .cut = Cut::kRemoved}, prepend}, " a") ==
        "a");
  CHECK(Applied({{.kind = Kind::kStrip}}, "\u3000 a b\n") == "a b");
  CHECK(Applied({{.kind = Kind::kStrip, .left = false}}, " a ") == " a");
}

TEST_CASE("text steps: spaces of SentencePiece", "[text]") {
  TextStep spaces{.kind = Kind::kSpaces, .content = "_", .right = false};
  CHECK(Applied({spaces}, "a b") == "_a_b");
  CHECK(Applied({spaces}, "  a") == "___a");  // before the first non-space character
  spaces.merge = true;
  CHECK(Applied({spaces}, "  a   b ") == "_a_b");
  spaces.left = false;
  spaces.merge = false;
  CHECK(Applied({spaces}, "a  b ") == "a__b_");
}

// Expected values: the documentation of Hugging Face tokenizers (SplitDelimiterBehavior).
TEST_CASE("text steps: split behaviours", "[text]") {
  const std::pair<Cut, const char*> rows[] = {{Cut::kRemoved, "the|final|countdown"},
                                              {Cut::kIsolated, "the|-|final|-|-|countdown"},
                                              {Cut::kWithPrevious, "the-|final-|-|countdown"},
                                              {Cut::kWithNext, "the|-final|-|-countdown"},
                                              {Cut::kContiguous, "the|-|final|--|countdown"}};
  for (const auto& [cut, pieces] : rows)
    CHECK(Applied({{.kind = Kind::kSplit, .pattern = "-", .syntax = Syntax::kLiteral, .cut = cut}},
                  "the-final--countdown") == pieces);
  CHECK(Applied({{.kind = Kind::kSplit,
                  .pattern = R"(\w+|[^\w\s]+)",
                  .cut = Cut::kRemoved,
                  .invert = true}},
                "Hi, you!?") == "Hi|,|you|!?");
}

TEST_CASE("text steps: excessive growth of the text is an error", "[text]") {
  std::vector<TextStep> steps(12, {.kind = Kind::kReplace, .pattern = "a", .content = "aaaa"});
  CHECK(RefusalId([&] { Applied(steps, "aaaa"); }) == "resource-limit");
  CHECK(RefusalId([&] {
          Applied({{.kind = Kind::kReplace,
                    .pattern = "",
                    .syntax = Syntax::kLiteral,
                    .content = std::string(1 << 20, 'x')},
                   {.kind = Kind::kReplace, .pattern = "a", .content = std::string(1 << 20, 'x')}},
                  std::string(1 << 16, 'a'));
        }) == "resource-limit");
}

TEST_CASE("charsmap: invalid tables are rejected", "[text]") {
  using namespace std::string_literals;
  for (const std::string& bytes :
       {"abc"s, "\4\0\0\0abcd"s, "\4\0\0\0abcdx"s, "\3\0\0\0abcx\0"s, "\xff\xff\xff\xff\0\0"s})
    CHECK(RefusalId([&] { RequireCharsmap(bytes); }) == "bad-file");
  std::string hostile = "\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0"s;
  RequireCharsmap(hostile);
  CHECK(ApplyCharsmap(hostile, "aé", 100) == "aé");
}

// Expected values: the splits of Hugging Face tokenizers, the authors' reference.
TEST_CASE("pre-tokenizers: splitting words, numbers and punctuation", "[text]") {
  struct Row {
    const char *name, *text, *pieces;
  };
  const Row rows[] = {
      {"gpt-2", "I'm 1234  x!?\n", "I|'m| 1234| | x|!?|\n"},
      {"starcoder", "a 12", "a| |1|2"},
      {"llama-bpe", "I'LL 12345 (x)\n\n y", "I|'LL| |123|45| (|x|)\n\n| y"},
      {"qwen2", "12 a", "1|2| a"},
      {"qwen35", "कि 1", "कि| |1"},
      {"gpt-4o", "HelloWORLD's", "Hello|WORLD's"},
      {"tekken", "aB 12", "a|B| |1|2"},
      {"deepseek-coder", "a1\n中文 b.", "a|1|\n|中文| b|."},
      // Ids of llama.cpp, where white space is only in the class \s.
      {"deepseek-coder", " \u2003 ", " \u2003 "},
      {"deepseek-llm", "\u3000\u2008\u3000", "\u3000\u2008\u3000"},
      {"deepseek-llm", "\U0001d400a\U0001d7d7 1", "\U0001d400|a|\U0001d7d7| |1"},
      {"deepseek-v3", "a1234中b!c", "a|123|4|中|b|!c"},
      {"falcon", "a1234+b", "a|123|4|+|b"},
      {"bloom", "a, b。c", "a|,| b|。|c"},
      {"superbpe", "a 1234567", "a |1|234|567"},
      {"default", "a-b 123456", "a|-|b| |123|456"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(Applied(Steps(FindPreTokenizer(row.name)), row.text) == row.pieces);
  }
}

TEST_CASE("pre-tokenizers: all patterns compile and names are unique", "[text]") {
  std::vector<std::string_view> names;
  for (const PreTokenizer& row : PreTokenizers()) {
    CHECK(Applied(Steps(row), "a").size() == 1);
    for (std::string_view name : row.names) {
      CHECK(std::find(names.begin(), names.end(), name) == names.end());
      CHECK(&FindPreTokenizer(name) == &row);
      names.push_back(name);
    }
  }
  CHECK(names.size() > 80);
  CHECK(RefusalId([] { FindPreTokenizer("nobody"); }) == "unsupported-tokenizer");
  CHECK(Refusal([] { FindPreTokenizer("nobody"); }).find("qwen2, ") != std::string::npos);
}

}  // namespace
}  // namespace mlc::text
