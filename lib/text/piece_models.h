// lib/text/piece_models.h - the four algorithms that convert a piece of text into tokens.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/text/vocabulary.h"

namespace mlc::text {

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the tokens of a piece produced by TextSteps. Takes O(n log n) time for a piece of
  // length n; for unigram models and WordPiece, multiplied by the length of the longest token.
  virtual void Encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
  // Returns whether pieces tend to repeat (words), so that caching the tokens of short pieces pays
  // off.
  virtual bool repeats() const { return true; }
};

// The models keep references to `spec` and `vocabulary`, which must outlive them.
std::unique_ptr<PieceModel> MakeSpmBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeUnigram(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeByteBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeWordPiece(const TokenizerSpec& spec, const Vocabulary& vocabulary);

}  // namespace mlc::text
