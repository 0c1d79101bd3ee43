// lib/ir/text_lex.h - tokens of MIL text, and errors that show the place. Private to the text
// parser.
#pragma once

#include <string>
#include <string_view>

#include "lib/support/error.h"

namespace mlc {

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;  // a string's without quotes, escapes as written
  size_t offset = 0;      // of its first character in the whole text

  bool is(std::string_view punctuation) const {
    return kind == Kind::kPunctuation && text == punctuation;
  }
  bool is_name(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// Splits a text, which must outlive it, on demand. Copying a lexer saves its place.
class TextLexer {
 public:
  TextLexer(std::string_view text, std::string_view source_name)
      : text_(text), source_name_(source_name) {}

  // Punctuation is one character, or `->`, `..`, `...`. `//` starts a comment that ends with the
  // line.
  Token Next();
  // "bad-text" at an offset, with the line and a caret under it.
  Error ErrorAt(size_t offset, std::string text) const;
  Location LocationOf(size_t offset, bool with_column) const;

 private:
  std::string_view text_, source_name_;
  size_t position_ = 0;
  mutable size_t counted_ = 0,
                 newlines_ = 0;  // line breaks before counted_: locations are mostly asked in order
};

// A string token's characters. Escapes: \" \\ \n \r \t; false on any other.
bool Unescape(std::string_view text, std::string& out);

}  // namespace mlc
