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
    struct Best {
      double score = -DBL_MAX;
      uint32_t begin = 0;
      int32_t id = -1;  // unknown
    };
    std::vector<Best> best(piece.size() + 1);
    best[0].score = 0;
    for (size_t at = 0; at < piece.size();) {
      size_t bytes = std::min(CharacterBytes(piece[at]), piece.size() - at);
      double so_far = best[at].score;
      bool whole = false;  // there is a token for the character alone
      auto offer = [&](size_t length, double score, int32_t id) {
        Best& there = best[at + length];
        if (so_far + score > there.score) there = {so_far + score, static_cast<uint32_t>(at), id};
      };
      trie_.Prefixes(piece.substr(at), [&](size_t length, int32_t id) {
        whole |= length == bytes;
        offer(length, vocabulary_.type(id) == TokenType::kUserDefined ? 0.0 : vocabulary_.score(id),
              id);
        return true;
      });
      if (!whole) offer(bytes, unknown_score_, -1);
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

 private:
  const TokenizerSpec& spec_;
  const Vocabulary& vocabulary_;
  Trie trie_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<PieceModel> MakeUnigram(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  return std::make_unique<Unigram>(spec, vocabulary);
}

}  // namespace mlc
