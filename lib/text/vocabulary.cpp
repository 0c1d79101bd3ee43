#include "lib/text/vocabulary.h"

#include <algorithm>
#include <optional>

#include "lib/support/utf8.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

constexpr std::string_view kSpace = "\u2581";

// bytes_to_unicode() of GPT-2: printable bytes of Latin-1 map to themselves, the others from U+0100
// on.
constexpr size_t kGpt2Characters = 0x144;
std::array<int16_t, kGpt2Characters> MakeGpt2Bytes() {
  std::array<int16_t, kGpt2Characters> bytes;
  bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    bytes[static_cast<size_t>(printable ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return bytes;
}

std::optional<unsigned char> ByteToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return {};
  int value = 0;
  for (char c : text.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0) return {};
    value = value * 16 + digit;
  }
  return static_cast<unsigned char>(value);
}

std::string WithSpaces(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    bool space = text.substr(at).starts_with(kSpace);
    result.push_back(space ? ' ' : text[at]);
    at += space ? kSpace.size() : 1;
  }
  return result;
}

const std::array<int16_t, kGpt2Characters>& Gpt2Bytes() {
  static const std::array<int16_t, kGpt2Characters> kBytes = MakeGpt2Bytes();
  return kBytes;
}

}  // namespace

bool BytesOfGpt2(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (FirstBadUtf8(text) != std::string_view::npos) return false;
  for (size_t at = 0; at < text.size();) {
    char32_t character = NextCharacter(text, at);
    if (character >= kGpt2Characters || Gpt2Bytes()[character] < 0) return false;
    bytes.push_back(static_cast<char>(Gpt2Bytes()[character]));
  }
  return true;
}

std::string Gpt2OfByte(unsigned char byte) {
  auto found = std::ranges::find(Gpt2Bytes(), int16_t{byte});
  std::string text;
  AppendCharacter(text, static_cast<char32_t>(found - Gpt2Bytes().begin()));
  return text;
}

Vocabulary::Vocabulary(const TokenizerSpec& spec) : spec_(&spec) {
  const size_t count = spec.tokens.size();
  ids_.reserve(count);
  bytes_.fill(-1);
  for (size_t i = 0; i < count; ++i) {
    const std::string& text = spec.tokens[i];
    int32_t id = static_cast<int32_t>(i);
    ids_[text] = id;
    longest_ = std::max(longest_, text.size());
    if (auto byte = ByteToken(text)) bytes_[*byte] = id;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (bytes_[byte] >= 0) continue;
    has_bytes_ = false;
    char text = static_cast<char>(byte);
    bytes_[byte] = Find({&text, 1});
  }
}

std::string Vocabulary::Piece(int32_t id, bool special) const {
  const std::string& text = spec_->tokens[static_cast<size_t>(id)];
  switch (type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return special ? text : std::string();
    case TokenType::kUserDefined:
      return text;
    case TokenType::kUnused:
      return {};
    case TokenType::kByte:
      if (auto byte = ByteToken(text)) return std::string(1, static_cast<char>(*byte));
      return text;
    case TokenType::kNormal:
      break;
  }
  if (spec_->kind == TokenizerKind::kByteBpe && spec_->byte_encoded) {
    std::string bytes;
    return BytesOfGpt2(text, bytes) ? bytes : text;
  }
  if (spec_->kind == TokenizerKind::kWordPiece && !spec_->continuing.empty())
    return text.starts_with(spec_->continuing) ? text.substr(spec_->continuing.size()) : " " + text;
  return WithSpaces(text);
}

}  // namespace mlc::text
