#include "lib/ir/text_lex.h"

#include <algorithm>

namespace mlc {

namespace {
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c) || c == '@'; }
}  // namespace

Token TextLexer::Next() {
  auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  while (position_ < text_.size()) {
    char c = text_[position_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '/' && at(position_ + 1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else {
      break;
    }
  }
  size_t begin = position_, end = begin;
  auto token = [&](Token::Kind kind) {
    position_ = end;
    return Token{kind, text_.substr(begin, end - begin), begin};
  };
  if (begin >= text_.size()) return token(Token::Kind::kEnd);
  char c = text_[begin];
  if (IsNameStart(c)) {
    while (IsNameChar(at(end))) ++end;
    return token(Token::Kind::kName);
  }
  if (IsDigit(c)) {
    bool hex = c == '0' && (at(begin + 1) == 'x' || at(begin + 1) == 'X');
    while (true) {
      char next = at(end), last = end > begin ? text_[end - 1] : '\0';
      bool exponent = hex ? last == 'p' || last == 'P' : last == 'e' || last == 'E';
      bool range = next == '.' && at(end + 1) == '.';
      if (!IsDigit(next) && !IsNameStart(next) && (next != '.' || range) &&
          !(exponent && (next == '+' || next == '-')))
        break;
      ++end;
    }
    return token(Token::Kind::kNumber);
  }
  if (c == '"') {
    for (end = begin + 1; at(end) != '"'; ++end) {
      if (at(end) == '\\') ++end;
      if (end >= text_.size() || text_[end] == '\n')
        throw ErrorAt(begin, "unterminated string").Expected("a closing quote on the same line");
    }
    Token string{Token::Kind::kString, text_.substr(begin + 1, end - begin - 1), begin};
    position_ = end + 1;
    return string;
  }
  if (std::string_view("()[]{}<>=,;?*+-.|").find(c) == std::string_view::npos)
    throw ErrorAt(begin, "invalid character in MIL text");
  for (std::string_view longer : {"->", "...", ".."})
    if (text_.substr(begin).starts_with(longer)) {
      end = begin + longer.size();
      return token(Token::Kind::kPunctuation);
    }
  end = begin + 1;
  return token(Token::Kind::kPunctuation);
}

Location TextLexer::LocationOf(size_t offset, bool with_column) const {
  if (offset < counted_) counted_ = newlines_ = 0;
  newlines_ += std::count(text_.begin() + counted_, text_.begin() + offset, '\n');
  counted_ = offset;
  size_t line = newlines_ + 1;
  size_t begin = text_.substr(0, offset).rfind('\n') + 1;  // npos + 1 == 0
  if (!with_column) return {std::string(source_name_), fmt::format("line {}", line)};
  return {std::string(source_name_), fmt::format("line {}:{}", line, offset - begin + 1)};
}

Error TextLexer::ErrorAt(size_t offset, std::string text) const {
  constexpr size_t kContext = 60;  // lines can be megabytes long
  offset = std::min(offset, text_.size());
  size_t begin = text_.substr(0, offset).rfind('\n') + 1;
  size_t end = std::min(text_.find('\n', offset), text_.size());
  if (offset - begin > kContext) begin = offset - kContext;
  std::string line(text_.substr(begin, std::min(end, offset + kContext) - begin));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  Error error("bad-text", std::move(text));
  error.At(LocationOf(offset, true));
  error.Note("| {}\n  | {}^", line, std::string(offset - begin, ' '));
  return error;
}

bool Unescape(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    constexpr std::string_view kEscapes = "\"\\nrt", kMeanings = "\"\\\n\r\t";
    size_t which = ++i < text.size() ? kEscapes.find(text[i]) : std::string_view::npos;
    if (which == std::string_view::npos) return false;
    out += kMeanings[which];
  }
  return true;
}

}  // namespace mlc
