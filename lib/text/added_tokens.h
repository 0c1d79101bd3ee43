// lib/text/added_tokens.h - tokens that are found in text before the model gets it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"
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
  // The tokens that are found in the text as it is. Both must stay. Error "resource-limit" for a token
  // that is too long to be one.
  AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary);
  // Those that are found in what `normalizers` made of the text: their own texts are normalised, too.
  // Error "bad-file" where nothing is left of one.
  AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary,
              const TextSteps& normalizers);

  bool empty() const { return tokens_.empty(); }
  // From left to right, without empty ones. `parse_special`: control tokens are looked for, too.
  // llama.cpp's rules: where tokens overlap the longest is found, and of equal ones the first in the
  // text. Hugging Face's: the one that begins first, and of those the longest. `text` is UTF-8 then.
  std::vector<TextFragment> Split(std::string_view text, bool parse_special) const;

 private:
  struct Token {
    AddedToken how;
    std::string text;
    bool special = false;
  };
  void Add(const AddedToken& how, const Vocabulary& vocabulary, std::string text);
  std::vector<TextFragment> SplitLongest(std::string_view text, bool parse_special) const;
  std::vector<TextFragment> SplitLeftmost(std::string_view text, bool parse_special) const;

  bool leftmost_ = false;
  std::vector<Token> tokens_;
  Trie trie_;  // their places in that list
};

}  // namespace mlc
