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

// Who wrote a pattern, which decides how it is read.
enum class Syntax {
  // mlc's own tables: PCRE2, whose compiled code is two to eight times as fast as Oniguruma. Unicode's
  // categories, look-around, possessive repetition; \s is Unicode's White_Space.
  kPcre,
  // A tokenizer.json: Oniguruma with its default syntax and options, as Hugging Face's tokenizers has
  // it (src/utils/onig.rs). ^ and $ are the ends of lines, \h a hexadecimal digit.
  kOniguruma,
  kLiteral,  // no expression
};

class Pattern {
 public:
  // Error "unsupported-tokenizer", which shows the expression and the place, where it is none.
  Pattern(const std::string& text, Syntax syntax);

  // All matches from the left, none overlapping another, appended to `found`. Empty ones are among
  // them, except directly behind another match. `text` is UTF-8 unless the pattern is literal. Error
  // "resource-limit" where an expression takes too many steps.
  void FindAll(std::string_view text, std::vector<TextRange>& found) const;

  class Engine;  // regex_engines.h

 private:
  std::shared_ptr<const Engine> engine_;  // null: literal
  std::string text_;
};

}  // namespace mlc
