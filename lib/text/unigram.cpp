// SentencePiece's unigram model: of all ways to write a piece with tokens, that with the highest sum
// of scores (Viterbi).
#include <algorithm>
#include <cfloat>

#include "lib/text/piece_models.h"
#include "lib/text/trie.h"
#include "lib/text/unicode.h"

namespace mlc {
namespace {

// How much worse than the worst token a character is that no token has (SentencePiece's kUnkPenalty).
constexpr float kUnknownPenalty = 10;

class Unigram : public PieceModel {
 public:
  Unigram(const TokenizerSpec& spec, const Vocabulary& vocabulary)
      : spec_(spec), vocabulary_(vocabulary) {
    float lowest = FLT_MAX;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      TokenType type = vocabulary.type(id);
      if (type == TokenType::kNormal) lowest = std::min(lowest, vocabulary.score(id));
      if (type == TokenType::kNormal || type == TokenType::kUserDefined ||
          type == TokenType::kUnused)
        trie_.Add(spec.tokens[static_cast<size_t>(id)], id);
    }
    unknown_score_ = lowest == FLT_MAX ? -kUnknownPenalty : lowest - kUnknownPenalty;
  }

  void Encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (spec_.wide_scores) {
      EncodeIn<double>(piece, ids);
    } else {
      EncodeIn<float>(piece, ids);
    }
  }

 private:
  // Sums of equal tokens in another order differ in their last bits, which decides where nothing else
  // does: SentencePiece keeps sums as floats, and compares them with candidates that are doubles
  // (Model::EncodeOptimized).
  template <class Score>
  void EncodeIn(std::string_view piece, std::vector<int32_t>& ids) const {
    struct Best {
      Score score = 0;
      uint32_t begin = kNowhere;
      int32_t id = -1;  // unknown
    };
    std::vector<Best> best(piece.size() + 1);
    best[0].begin = 0;
    for (size_t at = 0; at < piece.size();) {
      size_t bytes = std::min(CharacterBytes(piece[at]), piece.size() - at);
      Score so_far = best[at].score;
      bool whole = false;  // there is a token for the character alone
      auto offer = [&](size_t length, double sum, int32_t id) {
        Best& there = best[at + length];
        if (there.begin == kNowhere || sum > there.score)
          there = {static_cast<Score>(sum), static_cast<uint32_t>(at), id};
      };
      trie_.Prefixes(piece.substr(at), [&](size_t length, int32_t id) {
        whole |= length == bytes;
        double score = vocabulary_.type(id) == TokenType::kUserDefined ? 0 : vocabulary_.score(id);
        offer(length, so_far + score, id);
        return true;
      });
      if (!whole) offer(bytes, so_far + static_cast<Score>(unknown_score_), -1);
      at += bytes;
    }
    size_t first = ids.size();
    // From the end to the beginning, bytes in their order reversed.
    bool after_unknown = false;
    for (size_t end = piece.size(); end > 0; end = best[end].begin) {
      const Best& token = best[end];
      if (token.id >= 0) {
        ids.push_back(token.id);
        after_unknown = false;
      } else if (spec_.byte_fallback && vocabulary_.has_bytes()) {
        for (size_t i = end; i > token.begin; --i)
          ids.push_back(vocabulary_.Byte(static_cast<unsigned char>(piece[i - 1])));
      } else {
        if (spec_.unk >= 0 && !(after_unknown && spec_.fuse_unknown)) ids.push_back(spec_.unk);
        after_unknown = true;
      }
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  }

  const TokenizerSpec& spec_;
  const Vocabulary& vocabulary_;
  Trie trie_;
  float unknown_score_ = 0;
  static constexpr uint32_t kNowhere = UINT32_MAX;
};

}  // namespace

std::unique_ptr<PieceModel> MakeUnigram(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  return std::make_unique<Unigram>(spec, vocabulary);
}

}  // namespace mlc
