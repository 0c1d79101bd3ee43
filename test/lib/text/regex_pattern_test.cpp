#include "lib/text/regex_pattern.h"

#include <tuple>

#include "test/expected_error.h"

namespace mlc::text {
namespace {

using test::RefusalId;

// Returns the matches, separated by "|".
std::string Matches(const Pattern& pattern, std::string_view text) {
  std::vector<TextRange> found;
  pattern.FindAll(text, found);
  std::string joined;
  for (TextRange range : found)
    joined += (joined.empty() ? "" : "|") +
              std::string(text.substr(range.begin, range.end - range.begin));
  return joined;
}

// Expected values: Oniguruma 6.9.8 (doc/RE), which Hugging Face tokenizers uses.
TEST_CASE("pattern: Oniguruma syntax", "[text]") {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"^a", "a\na ba", "a|a"},  // line start, independent of options
      {"a$", "a\nba", "a|a"},
      {R"(\Aa)", "a\na", "a"},
      {R"(\h+)", "fF0 gh", "fF0"},  // hexadecimal digits
      {R"(\H+)", "fg", "g"},
      {R"(\v)", "a\vb\n", "\v"},    // the vertical tab
      {"(?m)a.b", "a\nb", "a\nb"},  // the dot matches a newline
      {"(?i)a.b", "A\nb Axb", "Axb"},
      {"a{,2}b", "aaab", "aab"},
      {"a{2}+", "aaaaa", "aaaa"},  // a{2} repeated, not possessive
      {"[a-z&&[^aeiou]]+", "strength", "str|ngth"},
      {"[a[xy]]+", "bxay", "xay"},
      {R"([\S]+)", "ab c", "ab|c"},
      {R"(\R)", "a\r\nb\n", "\r\n|\n"},
      {R"(a\Kb)", "ab", "b"},
      {"(?~ab)", "xxaby", "xx|by"},
      {R"(\w+)", "½²e", "½²e"},  // the tables differ inside a class
      {R"([\w]+)", "½²e", "e"},
  };
  for (const auto& [expression, text, matches] : rows) {
    INFO(expression);
    CHECK(Matches(Pattern(expression, Syntax::kOniguruma), text) == matches);
  }
}

TEST_CASE("pattern: PCRE syntax", "[text]") {
  auto matches = [](const char* expression, std::string_view text) {
    return Matches(Pattern(expression, Syntax::kPcre), text);
  };
  CHECK(matches(R"(\s)", "a\u180e\u0085b\u3000") == "\u0085|\u3000");
  CHECK(matches(R"([^\s\p{L}]+)", "a\u180e b1") == "\u180e|1");
  CHECK(matches(R"((?<!\s)\s++$)", "a\n\na \n") == " \n");
  CHECK(matches("[0-9]{1,2}(?=(?:[0-9]{3})++(?![0-9]))", "12345") == "12");
  CHECK(RefusalId([] { Pattern(R"([\S])", Syntax::kPcre); }) == "unsupported-tokenizer");
}

TEST_CASE("pattern: Unicode character classes", "[text]") {
  struct Row {
    const char *expression, *text, *matches;
  };
  const Row rows[] = {
      {R"(\p{L}+)", "a1Ж2中é", "a|Ж|中é"},
      {R"(\s)", "a\u180e\u0085b\u00a0\u3000", "\u0085|\u00a0|\u3000"},  // no longer includes U+180E
      {R"([^\s]+)", "a\u180eb c", "a\u180eb|c"},
      {R"(\S+)", "ab  cd\u2028e", "ab|cd|e"},
      {R"(\d+)", "12٣a½", "12٣"},
      {R"(\w+)", "e\u0301t_1-x", "e\u0301t_1|x"},
      {R"(\bthe\b)", "the othe the\u0301 the", "the|the"},
      {R"(\s+(?!\S)|\s+)", "a   b ", "  | | "},
      {R"((?i:'s))", "'S's'x", "'S|'s"},
      {R"([\p{P}!-/:-@\[-`{-~])", "a.+[", ".|+|["},
      {R"([]a]+)", "a]b", "a]"},
      {"[[:alpha:]]+", "ab1é", "ab|é"},
  };
  for (const Row& row : rows) {
    INFO(row.expression);
    CHECK(Matches(Pattern(row.expression, Syntax::kOniguruma), row.text) == row.matches);
  }
}

TEST_CASE("pattern: empty matches split the text", "[text]") {
  std::vector<TextRange> found;
  Pattern(R"((?=(?:\d{3})+$))", Syntax::kOniguruma).FindAll("1234567", found);
  REQUIRE(found.size() == 2);
  CHECK(found[0].begin == 1);
  CHECK(found[1].begin == 4);
  found.clear();
  Pattern("x*", Syntax::kOniguruma)
      .FindAll("é", found);  // before and after the character, not inside it
  REQUIRE(found.size() == 2);
  CHECK(found[1].begin == 2);
  found.clear();
  Pattern("x*", Syntax::kOniguruma)
      .FindAll("xa", found);  // none after the x, as in Rust's find_iter
  REQUIRE(found.size() == 2);
  CHECK(found[1].begin == 2);
}

TEST_CASE("pattern: literal patterns", "[text]") {
  CHECK(Matches(Pattern("a.c", Syntax::kLiteral), "abc a.c a.ca.c") == "a.c|a.c|a.c");
  CHECK(Matches(Pattern("", Syntax::kLiteral), "abc").empty());
  CHECK(Matches(Pattern("\xff", Syntax::kLiteral), "a\xff") == "\xff");
}

TEST_CASE("pattern: invalid expressions are rejected", "[text]") {
  for (const std::string& expression :
       {std::string("(a"), std::string("[a"), std::string(R"(\p{Nope})"), std::string("[b-a]"),
        std::string(5000, '('), std::string(70000, 'a')}) {
    INFO(expression.substr(0, 20));
    CHECK(RefusalId([&] { Pattern(expression, Syntax::kOniguruma); }) == "unsupported-tokenizer");
  }
}

TEST_CASE("pattern: exponential running time is an error", "[text]") {
  for (Syntax syntax : {Syntax::kPcre, Syntax::kOniguruma}) {
    std::vector<TextRange> found;
    std::string text(200, 'a');
    text.append("xb");
    CHECK(RefusalId([&] { Pattern("(?:a|a|a)*b", syntax).FindAll(text, found); }) ==
          "resource-limit");
  }
}

TEST_CASE("pattern: quadratic running time is an error", "[text]") {
  std::vector<TextRange> found;
  // Each match scans the whole text by look-ahead.
  Pattern pattern("(?=(?:a|x)*b|a)a", Syntax::kOniguruma);
  CHECK(RefusalId([&] { pattern.FindAll(std::string(50'000, 'a'), found); }) == "resource-limit");
}

TEST_CASE("pattern: a match of one megabyte does not overflow the stack", "[text]") {
  for (Syntax syntax : {Syntax::kPcre, Syntax::kOniguruma}) {
    std::vector<TextRange> found;
    Pattern("(?:(?![A-Z])[a-z])+", syntax).FindAll(std::string(1 << 20, 'a'), found);
    REQUIRE(found.size() == 1);
    CHECK(found[0].end == 1 << 20);
  }
}

}  // namespace
}  // namespace mlc::text
