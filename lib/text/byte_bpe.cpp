// BPE with a list of merges, over the bytes of a word (GPT-2) or over its characters.
#include <algorithm>

#include "lib/text/bpe_merge.h"
#include "lib/text/piece_models.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

class ByteBpe : public PieceModel {
 public:
  ByteBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary) : spec_(spec) {
    symbols_.reserve(spec.tokens.size() + 256);
    std::string text;
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      if (vocabulary.in_model(static_cast<int32_t>(id)) && InText(spec.tokens[id], text))
        tokens_[Symbol(text)] = static_cast<int32_t>(id);
    merges_.reserve(spec.merges.size());
    std::string left, right;
    for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
      if (!InText(spec.merges[rank].first, left) || !InText(spec.merges[rank].second, right))
        continue;
      int32_t a = Symbol(left), b = Symbol(right);
      merges_.try_emplace(Key(a, b), static_cast<int32_t>(rank), Symbol(left + right));
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      char c = static_cast<char>(byte);
      bytes_[byte] = Symbol(std::string(1, c));
      bool found = byte >= 0x21 && byte <= 0x7e && !spec.hugging_face;
      byte_ids_[byte] = spec.byte_encoded    ? (found ? vocabulary.Find({&c, 1}) : -1)
                        : spec.byte_fallback ? vocabulary.Byte(static_cast<unsigned char>(byte))
                                             : -1;
    }
  }

  void Encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (spec_.ignore_merges) {
      auto whole = symbols_.find(std::string(piece));
      if (whole != symbols_.end() && tokens_[static_cast<size_t>(whole->second)] >= 0) {
        ids.push_back(tokens_[static_cast<size_t>(whole->second)]);
        return;
      }
    }
    std::vector<MergeNode> nodes;
    nodes.reserve(piece.size());
    for (size_t at = 0; at < piece.size();) {
      size_t end = at + 1;
      int32_t symbol = bytes_[static_cast<unsigned char>(piece[at])];
      if (!spec_.byte_encoded) {
        end = std::min(at + CharacterBytes(piece[at]), piece.size());
        if (end > at + 1) {
          auto found = symbols_.find(std::string(piece.substr(at, end - at)));
          symbol = found == symbols_.end() ? -1 : found->second;
        }
      }
      // Hugging Face tokenizers drops unknown symbols before merging, so the symbols around them
      // may merge.
      bool left_out = spec_.hugging_face && spec_.unk < 0 && !IsToken(symbol) &&
                      !HasBytes(piece.substr(at, end - at));
      if (!left_out) AddNode(nodes, at, end, symbol);
      at = end;
    }
    Merge<int32_t>(
        nodes, [&](const MergeNode& left, const MergeNode& right, MergeChoice<int32_t>& choice) {
          if (left.symbol < 0 || right.symbol < 0) return false;
          auto found = merges_.find(Key(left.symbol, right.symbol));
          if (found == merges_.end()) return false;
          choice = {found->second.first, found->second.second};
          return true;
        });
    bool after_unknown = false;
    for (int32_t i = nodes.empty() ? -1 : 0; i >= 0; i = nodes[static_cast<size_t>(i)].next) {
      const MergeNode& node = nodes[static_cast<size_t>(i)];
      if (IsToken(node.symbol)) {
        ids.push_back(tokens_[static_cast<size_t>(node.symbol)]);
        after_unknown = false;
      } else {
        EncodeBytes(piece.substr(node.begin, node.end - node.begin), after_unknown, ids);
      }
    }
  }

 private:
  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  struct Mixed {
    size_t operator()(uint64_t key) const {
      key *= 0x9e3779b97f4a7c15u;
      return key ^ key >> 32;
    }
  };

  // Converts a token to its form in text; returns false if it cannot occur in text.
  bool InText(const std::string& token, std::string& text) const {
    if (spec_.byte_encoded) return BytesOfGpt2(token, text);
    text = token;
    return true;
  }
  int32_t Symbol(const std::string& text) {
    auto [found, is_new] = symbols_.try_emplace(text, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(-1);
    return found->second;
  }

  bool IsToken(int32_t symbol) const {
    return symbol >= 0 && tokens_[static_cast<size_t>(symbol)] >= 0;
  }
  int32_t ByteId(char c) const { return byte_ids_[static_cast<unsigned char>(c)]; }
  bool HasBytes(std::string_view text) const {
    return std::ranges::all_of(text, [&](char c) { return ByteId(c) >= 0; });
  }

  // Encodes text that is not in the vocabulary as bytes. Bytes without a token are dropped in
  // byte-level vocabularies, as in llama.cpp, and unknown in others.
  void EncodeBytes(std::string_view text, bool& after_unknown, std::vector<int32_t>& ids) const {
    if (!HasBytes(text) && (!spec_.byte_encoded || spec_.hugging_face) && spec_.unk >= 0) {
      if (!(after_unknown && spec_.fuse_unknown)) ids.push_back(spec_.unk);
      after_unknown = true;
      return;
    }
    after_unknown = false;
    for (char c : text)
      if (ByteId(c) >= 0) ids.push_back(ByteId(c));
  }

  const TokenizerSpec& spec_;
  // Numbers all tokens and all symbols in merges; not every symbol is a token.
  std::unordered_map<std::string, int32_t> symbols_;
  std::vector<int32_t> tokens_;  // by symbol; -1 if it is not a token
  std::unordered_map<uint64_t, std::pair<int32_t, int32_t>, Mixed> merges_;  // rank, symbol
  std::array<int32_t, 256> bytes_, byte_ids_;
};

}  // namespace

std::unique_ptr<PieceModel> MakeByteBpe(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  return std::make_unique<ByteBpe>(spec, vocabulary);
}

}  // namespace mlc::text
