// lib/text/regex_pattern.h - the regular expressions and literal patterns of tokenizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlc::text {

struct TextRange {
  size_t begin = 0, end = 0;
};

// The dialect of a pattern.
enum class Syntax {
  // Patterns of our own tables, run by PCRE2, whose compiled code is two to eight times as fast as
  // Oniguruma. Unicode categories, look-around, possessive quantifiers; \s is White_Space of
  // Unicode.
  kPcre,
  // Patterns of a tokenizer.json, run by Oniguruma with default syntax and options, as in Hugging
  // Face tokenizers (src/utils/onig.rs). ^ and $ match at line ends; \h is a hexadecimal digit.
  kOniguruma,
  kLiteral,  // not a regular expression
};

class Pattern {
 public:
  // Error "unsupported-tokenizer", with the pattern and the position, if it is invalid.
  Pattern(const std::string& text, Syntax syntax);

  // Appends all matches from left to right, without overlaps, to `found`. Empty matches are
  // included, except immediately after another match. `text` must be UTF-8 unless the pattern is
  // literal. Error "resource-limit" if the search takes too many steps.
  void FindAll(std::string_view text, std::vector<TextRange>& found) const;

  class Engine;  // regex_engines.h

 private:
  std::shared_ptr<const Engine> engine_;  // null for a literal
  std::string text_;
};

}  // namespace mlc::text
