#include "lib/text/added_tokens.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/text/unicode.h"

namespace mlc {
namespace {

constexpr size_t kLongest = 1024;  // bytes; models have some of a hundred

// isspace() of C, which is what llama.cpp and its files mean.
bool Blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool WordAt(std::string_view text, size_t at) { return IsWord(NextCharacter(text, at)); }

// A letter or digit beside [begin, end).
bool TouchesWord(std::string_view text, size_t begin, size_t end) {
  if (end < text.size() && WordAt(text, end)) return true;
  if (begin == 0) return false;
  size_t before = begin - 1;
  while (before > 0 && begin - before < 4 && (text[before] & 0xc0) == 0x80) --before;
  return WordAt(text, before);
}

}  // namespace

AddedTokens::AddedTokens(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  std::vector<int32_t> place(spec.tokens.size(), -1);
  auto add = [&](AddedToken how) {
    size_t id = static_cast<size_t>(how.id);
    if (place[id] >= 0) {
      tokens_[static_cast<size_t>(place[id])].how = how;
      return;
    }
    TokenType type = vocabulary.type(how.id);
    if (spec.tokens[id].empty()) return;
    if (spec.tokens[id].size() > kLongest)
      throw Error(
          "resource-limit",
          fmt::format("token {} of the tokenizer, which is looked for in every text, has {} "
                      "bytes",
                      id, spec.tokens[id].size()))
          .Expected(fmt::format("at most {}", kLongest));
    place[id] = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(
        {how, spec.tokens[id], type == TokenType::kControl || type == TokenType::kUnknown});
  };
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    TokenType type = vocabulary.type(id);
    if (type == TokenType::kControl || type == TokenType::kUnknown ||
        type == TokenType::kUserDefined)
      add({id});
  }
  for (const AddedToken& token : spec.added) add(token);
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const Token& a, const Token& b) { return a.text.size() > b.text.size(); });
  // Of equal texts the first is found.
  for (size_t i = tokens_.size(); i-- > 0;) trie_.Add(tokens_[i].text, static_cast<int32_t>(i));
}

std::vector<TextFragment> AddedTokens::Split(std::string_view text, bool parse_special) const {
  // One look at the text says which of them occur at all.
  std::vector<int32_t> present;
  if (!tokens_.empty()) {
    std::vector<bool> seen(tokens_.size());
    for (size_t at = 0; at < text.size(); ++at)
      trie_.Prefixes(text.substr(at, kLongest), [&](size_t, int32_t place) {
        if (!seen[static_cast<size_t>(place)]) present.push_back(place);
        seen[static_cast<size_t>(place)] = true;
        return true;
      });
    std::sort(present.begin(), present.end());
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
      for (size_t from = begin; begin < end;) {
        size_t found = text.substr(0, end).find(token.text, from);
        if (found == std::string_view::npos) break;
        size_t behind = found + token.text.size();
        if (token.how.single_word && TouchesWord(text, found, behind)) {
          from = found + 1;
          continue;
        }
        size_t left = found;
        while (token.how.left_strip && left > begin && Blank(text[left - 1])) --left;
        while (token.how.right_strip && behind < end && Blank(text[behind])) ++behind;
        if (left > begin) next.push_back({{begin, left}});
        next.push_back({{left, behind}, token.how.id});
        begin = from = behind;
      }
      if (begin < end) next.push_back({{begin, end}});
    }
    fragments.swap(next);
  }
  return fragments;
}

}  // namespace mlc
