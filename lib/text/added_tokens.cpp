#include "lib/text/added_tokens.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

constexpr size_t kLongest = 1024;  // bytes; real models have tokens of up to about a hundred

// isspace() of C, the definition that llama.cpp uses.
bool Blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// \w of Rust's regex crate: letters, digits, marks, connectors and joiners.
bool IsWord(std::string_view character) {
  static const Pattern kWord(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])",
                             Syntax::kOniguruma);
  std::vector<TextRange> found;
  kWord.FindAll(character, found);
  return !found.empty();
}

// Returns the start of the character that ends at `end` > 0. `text` is UTF-8.
size_t CharacterBefore(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (text[at] & 0xc0) == 0x80) --at;
  return at;
}

// Returns whether a word character precedes or follows [begin, end).
bool TouchesWord(std::string_view text, size_t begin, size_t end) {
  if (end < text.size() && IsWord(text.substr(end, CharacterBytes(text[end])))) return true;
  if (begin == 0) return false;
  size_t before = CharacterBefore(text, begin);
  return IsWord(text.substr(before, begin - before));
}

}  // namespace

AddedTokens::AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary)
    : leftmost_(spec.hugging_face) {
  std::vector<bool> listed(spec.tokens.size());
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : spec.added) {
    listed[static_cast<size_t>(token.id)] = true;
    if (!token.normalized) tokens.push_back(token);
  }
  if (!spec.hugging_face)
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      TokenType type = vocabulary.type(id);
      if (!listed[static_cast<size_t>(id)] &&
          (type == TokenType::kControl || type == TokenType::kUnknown ||
           type == TokenType::kUserDefined))
        tokens.push_back({id});
    }
  std::ranges::sort(tokens, [&](const AddedToken& a, const AddedToken& b) {
    size_t left = spec.tokens[static_cast<size_t>(a.id)].size();
    size_t right = spec.tokens[static_cast<size_t>(b.id)].size();
    return left != right ? left > right : a.id < b.id;
  });
  for (const AddedToken& token : tokens)
    Add(token, vocabulary, spec.tokens[static_cast<size_t>(token.id)]);
}

AddedTokens::AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                         const TextSteps& normalizers)
    : leftmost_(spec.hugging_face) {
  // Special tokens come first, because the first of several tokens with the same normalized text
  // wins (refresh_added_tokens in src/tokenizer/added_vocabulary.rs of Hugging Face tokenizers).
  std::vector<AddedToken> tokens = spec.added;
  std::stable_partition(tokens.begin(), tokens.end(), [&](const AddedToken& token) {
    return vocabulary.type(token.id) == TokenType::kControl;
  });
  for (const AddedToken& token : tokens) {
    if (!token.normalized) continue;
    TextPieces pieces{spec.tokens[static_cast<size_t>(token.id)], {}};
    pieces.ranges.push_back({0, pieces.text.size()});
    normalizers.Apply(pieces);
    if (pieces.text.empty())
      throw Error("bad-file", "the normalized text of the added token \"{}\" is empty",
                  spec.tokens[static_cast<size_t>(token.id)]);
    Add(token, vocabulary, std::move(pieces.text));
  }
}

void AddedTokens::Add(const AddedToken& how, const Vocabulary& vocabulary, std::string text) {
  if (text.size() > kLongest)
    throw Error("resource-limit",
                "added token {} of the tokenizer has {} "
                "bytes",
                how.id, text.size())
        .Expected("at most {} bytes", kLongest);
  // The first of several tokens with the same text wins.
  if (trie_.Find(text) >= 0) return;
  trie_.Add(text, static_cast<int32_t>(tokens_.size()));
  TokenType type = vocabulary.type(how.id);
  tokens_.push_back(
      {how, std::move(text), type == TokenType::kControl || type == TokenType::kUnknown});
}

std::vector<TextFragment> AddedTokens::Split(std::string_view text, bool parse_special) const {
  return leftmost_ ? SplitLeftmost(text, parse_special) : SplitLongest(text, parse_special);
}

// Follows find_matches in src/tokenizer/added_vocabulary.rs of Hugging Face tokenizers: the search
// continues after a match even if the match is rejected.
std::vector<TextFragment> AddedTokens::SplitLeftmost(std::string_view text,
                                                     bool parse_special) const {
  std::vector<TextFragment> fragments;
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    size_t begin = at, bytes = 0;
    int32_t place = -1;
    trie_.Prefixes(text.substr(at), [&](size_t length, int32_t value) {
      bytes = length;
      place = value;
      return true;
    });
    if (place < 0) {
      ++at;
      continue;
    }
    size_t end = at = begin + bytes;
    const Token& token = tokens_[static_cast<size_t>(place)];
    if (token.special && !parse_special) continue;
    if (token.how.single_word && TouchesWord(text, begin, end)) continue;
    auto is_space = [&](size_t from) { return IsSpace(NextCharacter(text, from)); };
    if (token.how.left_strip)
      for (size_t before = begin;
           before > done && is_space(before = CharacterBefore(text, before));)
        begin = before;
    if (token.how.right_strip)
      while (end < text.size() && is_space(end)) end += CharacterBytes(text[end]);
    if (done < begin) fragments.push_back({{done, begin}});
    fragments.push_back({{begin, end}, token.how.id});
    done = end;
  }
  if (done < text.size()) fragments.push_back({{done, text.size()}});
  return fragments;
}

std::vector<TextFragment> AddedTokens::SplitLongest(std::string_view text,
                                                    bool parse_special) const {
  // A single pass finds the tokens that occur at all.
  std::vector<int32_t> present;
  if (!tokens_.empty()) {
    std::vector<bool> seen(tokens_.size());
    for (size_t at = 0; at < text.size(); ++at)
      trie_.Prefixes(text.substr(at, kLongest), [&](size_t, int32_t place) {
        if (!seen[static_cast<size_t>(place)]) present.push_back(place);
        seen[static_cast<size_t>(place)] = true;
        return true;
      });
    std::ranges::sort(present);
  }
  std::vector<TextFragment> fragments, next;
  if (!text.empty()) fragments.push_back({{0, text.size()}});
  for (int32_t place : present) {
    const Token& token = tokens_[static_cast<size_t>(place)];
    if (token.special && !parse_special) continue;
    next.clear();
    for (const TextFragment& fragment : fragments) {
      if (fragment.id >= 0) {
        next.push_back(fragment);
        continue;
      }
      size_t begin = fragment.range.begin, end = fragment.range.end;
      while (begin < end) {
        size_t found = text.substr(0, end).find(token.text, begin);
        if (found == std::string_view::npos) break;
        size_t behind = found + token.text.size();
        size_t left = found;
        while (token.how.left_strip && left > begin && Blank(text[left - 1])) --left;
        while (token.how.right_strip && behind < end && Blank(text[behind])) ++behind;
        if (left > begin) next.push_back({{begin, left}});
        next.push_back({{left, behind}, token.how.id});
        begin = behind;
      }
      if (begin < end) next.push_back({{begin, end}});
    }
    fragments.swap(next);
  }
  return fragments;
}

}  // namespace mlc::text
