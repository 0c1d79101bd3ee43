// lib/text/added_tokens.h - tokens that are found in text before anything else is done with it.
#pragma once

#include <string_view>
#include <vector>

#include "lib/text/trie.h"
#include "lib/text/vocabulary.h"

namespace mlc {

// A token, or the text between two of them.
struct TextFragment {
  TextRange range;
  int32_t id = -1;  // -1: text
};

class AddedTokens {
 public:
  // Both must stay. Error "resource-limit" for a token that is too long to be one.
  AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary);
  // From left to right, without empty ones. Where tokens overlap the longest is found, and of equal
  // ones the first in the text. `parse_special`: control tokens are looked for, too.
  std::vector<TextFragment> Split(std::string_view text, bool parse_special) const;

 private:
  struct Token {
    AddedToken how;
    std::string_view text;
    bool special = false;
  };
  std::vector<Token> tokens_;  // longest first
  Trie trie_;                  // their places in that list
};

}  // namespace mlc
