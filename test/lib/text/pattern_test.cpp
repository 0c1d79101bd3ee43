#include "lib/text/pattern.h"

#include "test/refusal.h"

namespace mlc {
namespace {

using test::RefusalId;

// The matches, with "|" between them.
std::string Matches(const Pattern& pattern, std::string_view text) {
  std::vector<TextRange> found;
  pattern.FindAll(text, found);
  std::string joined;
  for (TextRange range : found)
    joined += (joined.empty() ? "" : "|") +
              std::string(text.substr(range.begin, range.end - range.begin));
  return joined;
}

TEST_CASE("pattern: classes are Unicode's", "[text]") {
  struct Row {
    const char *expression, *text, *matches;
  };
  const Row rows[] = {
      {R"(\p{L}+)", "a1Ж2中é", "a|Ж|中é"},
      {R"(\s)", "a\u180e\u0085b\u00a0\u3000", "\u0085|\u00a0|\u3000"},  // U+180E is none any more
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
      {"a$", "a\na", "a"},
  };
  for (const Row& row : rows) {
    INFO(row.expression);
    CHECK(Matches(Pattern::Regex(row.expression), row.text) == row.matches);
  }
}

TEST_CASE("pattern: empty matches cut without taking anything", "[text]") {
  std::vector<TextRange> found;
  Pattern::Regex(R"((?=(?:\d{3})+$))").FindAll("1234567", found);
  REQUIRE(found.size() == 2);
  CHECK(found[0].begin == 1);
  CHECK(found[1].begin == 4);
  found.clear();
  Pattern::Regex("x*").FindAll("é", found);  // before and behind the character, not in it
  REQUIRE(found.size() == 2);
  CHECK(found[1].begin == 2);
}

TEST_CASE("pattern: literals are found as they are", "[text]") {
  CHECK(Matches(Pattern::Literal("a.c"), "abc a.c a.ca.c") == "a.c|a.c|a.c");
  CHECK(Matches(Pattern::Literal(""), "abc").empty());
  CHECK(Matches(Pattern::Literal("\xff"), "a\xff") == "\xff");
}

TEST_CASE("pattern: what engines read differently is refused", "[text]") {
  for (const char* expression : {"[a&&b]", "[a[bc]]", "(a", R"([\S])", R"(\C)", "[[:alpha]"}) {
    INFO(expression);
    CHECK(RefusalId([&] { Pattern::Regex(expression); }) == "unsupported-tokenizer");
  }
}

TEST_CASE("pattern: an expression that takes exponential time is an error", "[text]") {
  Pattern pattern = Pattern::Regex("(?:a|a|a)*b");
  std::vector<TextRange> found;
  std::string text(200, 'a');
  text.append("xb");
  CHECK(RefusalId([&] { pattern.FindAll(text, found); }) == "resource-limit");
}

TEST_CASE("pattern: a megabyte that is one match needs no deep stack", "[text]") {
  std::vector<TextRange> found;
  Pattern::Regex("(?:(?![A-Z])[a-z])+").FindAll(std::string(1 << 20, 'a'), found);
  REQUIRE(found.size() == 1);
  CHECK(found[0].end == 1 << 20);
}

}  // namespace
}  // namespace mlc
