// Stop texts: the result does not depend on how the text is split.
#include "lib/text/stop_strings.h"

#include "test/catch.h"

namespace mlc::test {
using namespace text;
namespace {

struct Shown {
  std::string text;
  bool stopped;
  friend bool operator==(const Shown&, const Shown&) = default;
};

Shown InPieces(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopTexts texts(stops);
  Shown shown;
  for (const std::string& piece : pieces) shown.text += texts.Add(piece);
  shown.stopped = texts.stopped();
  if (!shown.stopped) shown.text += texts.End();
  return shown;
}

}  // namespace

TEST_CASE("stop texts: the result does not depend on how the text is split", "[stop_texts]") {
  struct {
    std::vector<std::string> stops;
    std::string text;
    Shown expected;
  } const cases[] = {
      {{"###"}, "one ## two ### three", {"one ## two ", true}},
      {{"###"}, "one ## two ##", {"one ## two ##", false}},
      {{"ab", "abc"}, "xxabc", {"xx", true}},
      {{"abc", "b"}, "xxabc", {"xxa", true}},     // "b" is completed first
      {{"bcd", "abcd"}, "xxabcd", {"xx", true}},  // completed together: the longest wins
      {{"aab"}, "aaab", {"a", true}},
      {{""}, "text", {"text", false}},
      {{}, "text", {"text", false}},
      {{"text"}, "text", {"", true}},
  };
  for (const auto& [stops, text, expected] : cases) {
    CHECK(InPieces(stops, {text}) == expected);
    std::vector<std::string> bytes;
    for (char byte : text) bytes.emplace_back(1, byte);
    CHECK(InPieces(stops, bytes) == expected);
    for (size_t at = 0; at <= text.size(); ++at)
      CHECK(InPieces(stops, {text.substr(0, at), text.substr(at)}) == expected);
  }
}

TEST_CASE("stop texts: only possible beginnings of a stop text are withheld", "[stop_texts]") {
  StopTexts texts({"\n\nUser:"});
  CHECK(texts.Add("Hello.") == "Hello.");
  CHECK(texts.Add("\n\nU") == "");
  CHECK(texts.Add("nder") == "\n\nUnder");
  CHECK(texts.Add("\n\nUser: no") == "");
  CHECK(texts.stopped());
  CHECK(texts.Add("more") == "");
}

}  // namespace mlc::test
