#include "lib/text/tokenizer_difference.h"

#include "test/catch.h"

namespace mlc::text {
namespace {

TokenizerSpec Small() {
  TokenizerSpec spec;
  spec.tokens = {"<s>", "a", "b", "ab"};
  spec.scores = {0, -1, -2, -3};
  spec.types = {TokenType::kControl, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal};
  spec.merges = {{"a", "b"}};
  spec.added = {{0}};
  spec.steps = {{TextStep::Kind::kNfc}};
  spec.before = {0};
  spec.chat_template = "{{ messages }}";
  return spec;
}

TEST_CASE("Difference describes the first difference between two tokenizers", "[text]") {
  CHECK(Difference(Small(), Small()).empty());
  struct Case {
    void (*change)(TokenizerSpec& spec);
    std::string said;
  };
  for (const auto& [change, said] : {
           Case{[](TokenizerSpec& s) { s.kind = TokenizerKind::kUnigram; },
                "the kind of tokenizer is unigram where the source has SentencePiece BPE"},
           Case{[](TokenizerSpec& s) { std::swap(s.tokens[1], s.tokens[2]); },
                "token 1 is \"b\" where the source has \"a\""},
           Case{[](TokenizerSpec& s) { s.tokens.pop_back(); },
                "the number of tokens is 3 where the source has 4"},
           Case{[](TokenizerSpec& s) { s.scores[3] = -4; },
                "score 3 is -4 where the source has -3"},
           Case{[](TokenizerSpec& s) { s.types[3] = TokenType::kControl; },
                "type 3 is 3 where the source has 1"},
           Case{[](TokenizerSpec& s) {
                  s.merges[0] = {"b", "a"};
                },
                "merge 0 is \"b\" \"a\" where the source has \"a\" \"b\""},
           Case{[](TokenizerSpec& s) { s.added[0].left_strip = true; }, "added token 0"},
           Case{[](TokenizerSpec& s) { s.steps[0].kind = TextStep::Kind::kLowercase; },
                "text step 0"},
           Case{[](TokenizerSpec& s) { s.pre_tokenizer = "qwen2"; },
                "the pre-tokenizer is \"qwen2\" where the source has \"\""},
           Case{[](TokenizerSpec& s) { s.byte_fallback = false; },
                "byte_fallback is off where the source has on"},
           Case{[](TokenizerSpec& s) { s.bos = 0; }, "bos is 0 where the source has -1"},
           Case{[](TokenizerSpec& s) { s.before = {1}; },
                "token before a text 0 is 1 where the source has 0"},
           Case{[](TokenizerSpec& s) { s.ends = {1}; },
                "the number of tokens that end an answer is 1 where the source has 0"},
           Case{[](TokenizerSpec& s) { s.chat_template = std::string(100, 'x'); },
                "the chat template is \"" + std::string(40, 'x') +
                    "\"... where the source has \"{{ messages }}\""},
       }) {
    TokenizerSpec other = Small();
    change(other);
    const std::string found = Difference(other, Small());
    INFO(found << " / " << said);
    CHECK(found.starts_with(said));
    CHECK_FALSE(Difference(Small(), other).empty());
  }
}

}  // namespace
}  // namespace mlc::text
