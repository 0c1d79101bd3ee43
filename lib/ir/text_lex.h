// lib/ir/text_lex.h - the lexer of MIL text, and errors that quote the source line. Private to the
// text parser.
#pragma once

#include <string>
#include <string_view>

#include "lib/support/error.h"

namespace mlc {

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;  // without the quotes of a string; escapes are not resolved
  size_t offset = 0;      // position of the first character in the text

  bool is(std::string_view punctuation) const {
    return kind == Kind::kPunctuation && text == punctuation;
  }
  bool is_name(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// Splits MIL text into tokens on demand. The text must outlive the lexer. Copying a lexer saves its
// position.
class TextLexer {
 public:
  TextLexer(std::string_view text, std::string_view source_name)
      : text_(text), source_name_(source_name) {}

  // Punctuation is a single character, `->`, `..` or `...`. `//` starts a comment up to the end of
  // the line.
  Token Next();
  // Error "bad-text" at an offset, with the source line and a caret.
  Error ErrorAt(size_t offset, std::string text) const;
  Location LocationOf(size_t offset, bool with_column) const;

 private:
  std::string_view text_, source_name_;
  size_t position_ = 0;
  mutable size_t counted_ = 0,
                 newlines_ =
                     0;  // line breaks before counted_; locations are mostly requested in order
};

// Resolves the escapes \" \\ \n \r \t of a string token; false on any other escape.
bool Unescape(std::string_view text, std::string& out);

}  // namespace mlc
