// lib/text/piece_models.h - the four ways in which a piece of text becomes tokens.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/text/vocabulary.h"

namespace mlc {

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the tokens of a piece that TextSteps left. Time grows with the piece's length and a
  // little faster (n log n), but for unigram models and WordPiece, which also multiply it with the
  // length of the longest token.
  virtual void Encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
  // Pieces are often the same words: what is short enough is looked up before it is encoded.
  virtual bool repeats() const { return true; }
};

// Each refers to `spec` and `vocabulary`, which must stay.
std::unique_ptr<PieceModel> MakeSpmBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeUnigram(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeByteBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary);
std::unique_ptr<PieceModel> MakeWordPiece(const TokenizerSpec& spec, const Vocabulary& vocabulary);

}  // namespace mlc
