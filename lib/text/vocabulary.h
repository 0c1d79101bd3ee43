// lib/text/vocabulary.h - looks up the tokens of a TokenizerSpec by text, and the bytes of each
// token.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/text/tokenizer.h"

namespace mlc::text {

// Converts `text` from GPT-2's spelling to bytes ("\u0120the" is " the"); returns false if a
// character does not stand for a byte.
bool BytesOfGpt2(std::string_view text, std::string& bytes);

// Returns the spelling of one byte.
std::string Gpt2OfByte(unsigned char byte);

class Vocabulary {
 public:
  // Keeps a reference to `spec`, which must outlive it and which Tokenizer has checked.
  explicit Vocabulary(const TokenizerSpec& spec);

  int32_t size() const { return static_cast<int32_t>(spec_->tokens.size()); }
  TokenType type(int32_t id) const {
    return spec_->types.empty() ? TokenType::kNormal : spec_->types[static_cast<size_t>(id)];
  }
  float score(int32_t id) const {
    return spec_->scores.empty() ? 0 : spec_->scores[static_cast<size_t>(id)];
  }
  bool in_model(int32_t id) const {
    return spec_->in_model.empty() || spec_->in_model[static_cast<size_t>(id)];
  }
  // Returns the token with this spelling, the last one if there are several; -1 if there is none.
  int32_t Find(std::string_view text) const {
    auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }
  // Returns the token "<0x0A>" or else the token of the byte itself; -1 if there is neither.
  int32_t Byte(unsigned char byte) const { return bytes_[byte]; }
  bool has_bytes() const { return has_bytes_; }  // whether all 256 bytes have tokens
  size_t longest() const { return longest_; }    // length of the longest token in bytes
  // Returns the text of a token. `special`: include control tokens, as they are spelled.
  std::string Piece(int32_t id, bool special) const;

 private:
  const TokenizerSpec* spec_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::array<int32_t, 256> bytes_;
  bool has_bytes_ = true;
  size_t longest_ = 0;
};

}  // namespace mlc::text
