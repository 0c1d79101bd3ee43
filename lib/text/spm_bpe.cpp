// SentencePiece's BPE: merges adjacent symbols whose concatenation is in the vocabulary, highest
// score first. Remaining symbols without a token are encoded as bytes.
#include <algorithm>

#include "lib/text/bpe_merge.h"
#include "lib/text/piece_models.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

constexpr std::string_view kSpace = "\u2581";

class SpmBpe : public PieceModel {
 public:
  SpmBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary)
      : spec_(spec), vocabulary_(vocabulary) {
    // If no token contains a space after another character, words can be encoded independently.
    words_apart_ = std::ranges::none_of(spec.tokens, [](std::string_view text) {
      for (size_t at = 1; (at = text.find(kSpace, at)) != std::string_view::npos; ++at)
        if (!text.substr(0, at).ends_with(kSpace)) return true;
      return false;
    });
  }

  void Encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (!words_apart_ || piece.size() < kWorthIt) return EncodeWord(piece, ids);
    std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;
    std::vector<int32_t> store;
    for (size_t begin = 0; begin < piece.size();) {
      size_t end = WordEnd(piece, begin);
      std::string_view word = piece.substr(begin, end - begin);
      begin = end;
      if (word.size() > kShortWord) {
        EncodeWord(word, ids);
        continue;
      }
      auto [found, is_new] = known.try_emplace(word, store.size(), 0);
      if (is_new) {
        EncodeWord(word, store);
        found->second.second = store.size();
      }
      for (size_t i = found->second.first; i < found->second.second; ++i) ids.push_back(store[i]);
    }
  }

  bool repeats() const override { return false; }

 private:
  static constexpr size_t kWorthIt = 256, kShortWord = 64;

  // A word ends where a space follows another character.
  static size_t WordEnd(std::string_view piece, size_t begin) {
    size_t at = begin;
    while (piece.substr(at).starts_with(kSpace)) at += kSpace.size();
    return std::min(piece.find(kSpace, at), piece.size());
  }

  void EncodeWord(std::string_view word, std::vector<int32_t>& ids) const {
    std::vector<MergeNode> nodes;
    for (size_t at = 0; at < word.size();) {
      size_t end = std::min(at + CharacterBytes(word[at]), word.size());
      AddNode(nodes, at, end, vocabulary_.Find(word.substr(at, end - at)));
      at = end;
    }
    Merge<float>(nodes,
                 [&](const MergeNode& left, const MergeNode& right, MergeChoice<float>& choice) {
                   size_t bytes = right.end - left.begin;
                   if (bytes > vocabulary_.longest()) return false;
                   choice.symbol = vocabulary_.Find(word.substr(left.begin, bytes));
                   if (choice.symbol < 0) return false;
                   choice.rank = -vocabulary_.score(choice.symbol);
                   return true;
                 });
    for (int32_t i = nodes.empty() ? -1 : 0; i >= 0; i = nodes[static_cast<size_t>(i)].next) {
      const MergeNode& node = nodes[static_cast<size_t>(i)];
      if (node.symbol >= 0) {
        ids.push_back(node.symbol);
        continue;
      }
      for (size_t at = node.begin; at < node.end; ++at) {
        int32_t id = vocabulary_.Byte(static_cast<unsigned char>(word[at]));
        if (id < 0) id = spec_.unk;
        if (id >= 0) ids.push_back(id);
      }
    }
  }

  const TokenizerSpec& spec_;
  const Vocabulary& vocabulary_;
  bool words_apart_ = false;
};

}  // namespace

std::unique_ptr<PieceModel> MakeSpmBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  return std::make_unique<SpmBpe>(spec, vocabulary);
}

}  // namespace mlc::text
