// lib/text/vocabulary.h - the tokens of a TokenizerSpec by their texts, and the bytes that each stands
// for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mlc {

// The bytes that GPT-2's vocabularies write as `text` ("\u0120the" is " the"); false where a
// character of it stands for none.
bool BytesOfGpt2(std::string_view text, std::string& bytes);

// And back: how they write one byte.
std::string Gpt2OfByte(unsigned char byte);

class Vocabulary {
 public:
  // Reads `spec`, which must stay. Errors of Tokenizer.
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
  // The token that is written so; the last of several. -1: none.
  int32_t Find(std::string_view text) const {
    auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }
  // "<0x0A>", or where there is none the byte itself; -1: neither.
  int32_t Byte(unsigned char byte) const { return bytes_[byte]; }
  bool has_bytes() const { return has_bytes_; }  // all 256 of them
  size_t longest() const { return longest_; }    // bytes of a token
  // What a token stands for in text. `special`: control tokens as they are written.
  std::string Piece(int32_t id, bool special) const;

 private:
  const TokenizerSpec* spec_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::array<int32_t, 256> bytes_;
  bool has_bytes_ = true;
  size_t longest_ = 0;
};

}  // namespace mlc
