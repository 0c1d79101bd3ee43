// lib/text/added_tokens.h - added tokens, which are extracted from the text before it reaches the
// tokenization model (BPE, unigram, WordPiece).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"
#include "lib/text/trie.h"
#include "lib/text/vocabulary.h"

namespace mlc::text {

// A token, or the text between two tokens.
struct TextFragment {
  TextRange range;
  int32_t id = -1;  // -1 for text
};

class AddedTokens {
 public:
  // Added tokens that match the raw text. The arguments must outlive the object. Error
  // "resource-limit" if a token is too long.
  AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary);
  // Added tokens that match the normalized text; their own texts are normalized too. Error
  // "bad-file" if the normalized text of a token is empty.
  AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary,
              const TextSteps& normalizers);

  bool empty() const { return tokens_.empty(); }
  // Splits the text into fragments, from left to right, without empty ones. With `parse_special`,
  // control tokens are matched too. Under llama.cpp's rules, the longest of overlapping tokens
  // wins, and of equally long ones the leftmost. Under Hugging Face's rules, the leftmost wins,
  // then the longest; `text` must then be UTF-8.
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
  Trie trie_;  // indices into that list
};

}  // namespace mlc::text
