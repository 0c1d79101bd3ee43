// lib/text/pattern.h - regular expressions of tokenizers, and text that is looked for as it is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

struct TextRange {
  size_t begin = 0, end = 0;
};

// The expressions are those that Rust's, Oniguruma's and PCRE's engines read alike: Unicode's
// categories, look-around, possessive repetition; \s is Unicode's White_Space, \d Nd, \w letters,
// marks, digits and what connects them. What the engines read differently (sets of a class:
// "[a&&b]", "[a[b]]") is refused.
class Pattern {
 public:
  // Error "unsupported-tokenizer", which shows the expression and the place, where it is none.
  static Pattern Regex(const std::string& expression);
  static Pattern Literal(std::string text);

  // All matches from the left, none overlapping another, appended to `found`. Empty ones are among
  // them. `text` is UTF-8 unless the pattern is literal. Error "resource-limit" where an expression
  // takes too many steps.
  void FindAll(std::string_view text, std::vector<TextRange>& found) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string text_;  // of the expression, or the literal
};

}  // namespace mlc
