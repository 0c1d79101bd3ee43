// SentencePiece's unigram model: the segmentation into tokens with the highest sum of scores
// (Viterbi).
#include <algorithm>
#include <cfloat>

#include "lib/support/error.h"
#include "lib/text/piece_models.h"
#include "lib/text/trie.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

// The penalty for an unknown character, relative to the worst token (kUnkPenalty of SentencePiece).
constexpr float kUnknownPenalty = 10;

class Unigram : public PieceModel {
 public:
  Unigram(const TokenizerSpec& spec, const Vocabulary& vocabulary)
      : spec_(spec), vocabulary_(vocabulary) {
    float lowest = FLT_MAX;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      TokenType type = vocabulary.type(id);
      if (spec.hugging_face ? vocabulary.in_model(id) : type == TokenType::kNormal)
        lowest = std::min(lowest, vocabulary.score(id));
      if (spec.hugging_face ? vocabulary.in_model(id)
                            : type == TokenType::kNormal || type == TokenType::kUserDefined ||
                                  type == TokenType::kUnused)
        trie_.Add(spec.tokens[static_cast<size_t>(id)], id);
    }
    unknown_score_ = lowest == FLT_MAX ? -kUnknownPenalty : lowest - kUnknownPenalty;
  }

  void Encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (spec_.hugging_face) {
      EncodeIn<double>(piece, ids);
    } else {
      EncodeIn<float>(piece, ids);
    }
  }

 private:
  // Sums of the same scores in different order differ in the low-order bits, which break ties.
  // SentencePiece stores sums as floats and compares them with candidates in double
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
      bool whole = false;  // the character has a token of its own
      auto offer = [&](size_t length, double sum, int32_t id) {
        Best& there = best[at + length];
        if (there.begin == kNowhere || sum > there.score)
          there = {static_cast<Score>(sum), static_cast<uint32_t>(at), id};
      };
      trie_.Prefixes(piece.substr(at), [&](size_t length, int32_t id) {
        whole |= length == bytes;
        bool user = !spec_.hugging_face && vocabulary_.type(id) == TokenType::kUserDefined;
        double score = user ? 0 : vocabulary_.score(id);
        offer(length, so_far + score, id);
        return true;
      });
      if (!whole) offer(bytes, so_far + static_cast<Score>(unknown_score_), -1);
      at += bytes;
    }
    size_t first = ids.size();
    // Walks from the end to the beginning, so bytes are appended in reverse order.
    auto unknown = [&](size_t end) {
      return best[end].id < 0 || (spec_.hugging_face && best[end].id == spec_.unk);
    };
    for (size_t end = piece.size(); end > 0;) {
      size_t begin = best[end].begin;
      if (unknown(end)) {
        while (spec_.fuse_unknown && begin > 0 && unknown(begin)) begin = best[begin].begin;
        PushUnknown(piece.substr(begin, end - begin), ids);
      } else {
        ids.push_back(best[end].id);
      }
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  }

  // Appends the tokens for characters without a token, from the last byte to the first.
  void PushUnknown(std::string_view text, std::vector<int32_t>& ids) const {
    // Consecutive unknown characters may form a token together, although an unlikely one.
    int32_t whole = spec_.hugging_face ? trie_.Find(text) : -1;
    if (whole >= 0) {
      ids.push_back(whole);
    } else if (spec_.byte_fallback && vocabulary_.has_bytes()) {
      for (size_t i = text.size(); i-- > 0;)
        ids.push_back(vocabulary_.Byte(static_cast<unsigned char>(text[i])));
    } else if (spec_.unk >= 0) {
      ids.push_back(spec_.unk);
    } else if (spec_.hugging_face) {
      throw Error("bad-file",
                  "the tokenizer has no token for \"{}\", and no \"unk_id\" "
                  "for unknown characters",
                  text);
    }
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

}  // namespace mlc::text
