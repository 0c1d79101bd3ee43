// WordPiece: repeatedly takes the longest token that matches the start of the remaining word; if
// none matches, the whole word is unknown.
#include <algorithm>

#include "lib/text/piece_models.h"
#include "lib/text/trie.h"

namespace mlc::text {
namespace {

constexpr std::string_view kSpace = "\u2581";

class WordPiece : public PieceModel {
 public:
  WordPiece(const TokenizerSpec& spec, const Vocabulary& vocabulary) : spec_(spec) {
    // Supports both spellings: "##" before pieces inside a word, and U+2581 before those that begin
    // one, as in GGUF.
    const std::string& inside = spec.continuing;
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.in_model(id)) continue;
      const std::string& text = spec.tokens[static_cast<size_t>(id)];
      if (inside.empty()) {
        trie_.Add(text, id);
      } else if (text.starts_with(inside)) {
        trie_.Add(std::string_view(text).substr(inside.size()), id);
      } else {
        trie_.Add(std::string(kSpace) + text, id);
      }
    }
  }

  void Encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    size_t before = ids.size();
    std::string word = std::string(kSpace).append(piece);
    bool known = spec_.max_word_characters == 0 || Characters(piece) <= spec_.max_word_characters;
    for (size_t at = 0; known && at < word.size();) {
      size_t longest = 0;
      int32_t token = -1;
      trie_.Prefixes(std::string_view(word).substr(at), [&](size_t bytes, int32_t id) {
        longest = bytes;
        token = id;
        return true;
      });
      known = token >= 0;
      if (known) ids.push_back(token);
      at += longest;
    }
    if (known) return;
    ids.resize(before);
    if (spec_.unk >= 0) ids.push_back(spec_.unk);
  }

 private:
  static int64_t Characters(std::string_view text) {
    return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  }

  const TokenizerSpec& spec_;
  Trie trie_;
};

}  // namespace

std::unique_ptr<PieceModel> MakeWordPiece(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  return std::make_unique<WordPiece>(spec, vocabulary);
}

}  // namespace mlc::text
