// The lexer. Its rules, and those of white space, are those of jinja2/lexer.py.
#include <algorithm>

#include "lib/text/jinja_syntax.h"
#include "lib/text/python_text.h"
#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

using Kind = Token::Kind;

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool HexDigit(char c) { return Digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool NameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> Run() {
    while (at_ < source_.size()) OutsideOfTags();
    Add(Kind::kEnd, "", source_.size());
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void Fail(size_t offset, std::string text) const {
    FailAt(source_, offset, std::move(text), "");
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool Next(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void Add(Kind kind, std::string text, size_t offset) {
    tokens_.push_back({kind, std::move(text), offset});
  }
  void SkipSpace() { at_ += LeadingSpace(source_.substr(at_)); }

  // Text in front of a tag: "-" strips it, and a tag takes the spaces before it on its line.
  std::string_view Stripped(std::string_view text, char sign, bool strips_line) const {
    if (sign == '-') return StripRight(text);
    if (sign == '+' || !strips_line) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == text.npos ? 0 : newline + 1;
    if (line == 0 && !line_starts_) return text;
    return LeadingSpace(text.substr(line)) == text.size() - line ? text.substr(0, line) : text;
  }
  // Behind the end of a block, comment or raw text; `sign` stood before it.
  void EndTag(char sign) {
    if (sign == '-')
      SkipSpace();
    else if (sign != '+' && Peek() == '\n')
      ++at_;
    line_starts_ = source_[at_ - 1] == '\n';
  }

  void OutsideOfTags() {
    size_t begin = at_;
    for (;; ++begin) {
      begin = source_.find('{', begin);
      if (begin == source_.npos || begin + 1 >= source_.size()) {
        Add(Kind::kText, std::string(source_.substr(at_)), at_);
        at_ = source_.size();
        return;
      }
      const char next = source_[begin + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const std::string_view text = source_.substr(at_, begin - at_);
    const size_t text_at = at_;
    const char tag = source_[begin + 1];
    at_ = begin + 2;
    const char sign = Peek() == '-' || Peek() == '+' ? Peek() : '\0';
    if (sign) ++at_;
    const std::string_view kept = Stripped(text, sign, tag != '{');
    if (!kept.empty()) Add(Kind::kText, std::string(kept), text_at);
    if (tag == '#') return Comment(begin);
    if (tag == '%' && Raw(begin)) return;
    Add(tag == '{' ? Kind::kVariableBegin : Kind::kBlockBegin, "", begin);
    Tag(tag, begin);
  }

  void Comment(size_t begin) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) Fail(begin, "missing end of comment: expected #}");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    EndTag(sign);
  }

  // {% raw %} ... {% endraw %}: text as it is. Returns whether it was one.
  bool Raw(size_t begin) {
    const size_t start = at_;
    SkipSpace();
    if (!Next("raw")) return at_ = start, false;
    at_ += 3;
    SkipSpace();
    const bool strips = Next("-%}");
    if (!strips && !Next("%}")) return at_ = start, false;
    at_ += strips ? 3 : 2;
    if (strips) SkipSpace();
    line_starts_ = source_[at_ - 1] == '\n';
    const size_t text_at = at_;
    for (size_t end = source_.find("{%", at_); end != source_.npos;
         end = source_.find("{%", end + 2)) {
      at_ = end + 2;
      const char sign = Peek() == '-' || Peek() == '+' ? Peek() : '\0';
      if (sign) ++at_;
      SkipSpace();
      if (!Next("endraw")) continue;
      at_ += 6;
      SkipSpace();
      const char last = Next("-%}") ? '-' : Next("+%}") ? '+' : '\0';
      if (!last && !Next("%}")) continue;
      at_ += last ? 3 : 2;
      const std::string_view kept = Stripped(source_.substr(text_at, end - text_at), sign, true);
      if (!kept.empty()) Add(Kind::kText, std::string(kept), text_at);
      EndTag(last);
      return true;
    }
    Fail(begin, "missing end of raw text: expected {% endraw %}");
  }

  void Tag(char tag, size_t begin) {
    std::vector<char> open;
    const std::string_view end = tag == '{' ? "}}" : "%}";
    for (;;) {
      SkipSpace();
      if (at_ >= source_.size()) Fail(begin, fmt::format("this tag has no end: expected {}", end));
      if (open.empty()) {
        const char sign = Next(fmt::format("-{}", end))                 ? '-'
                          : tag == '%' && Next(fmt::format("+{}", end)) ? '+'
                                                                        : '\0';
        if (sign || Next(end)) {
          Add(tag == '{' ? Kind::kVariableEnd : Kind::kBlockEnd, "", at_);
          at_ += end.size() + (sign ? 1 : 0);
          if (tag == '%') return EndTag(sign);
          if (sign) SkipSpace();
          line_starts_ = source_[at_ - 1] == '\n';
          return;
        }
      }
      const char c = Peek();
      if (Digit(c))
        LexNumber();
      else if (NameStart(c))
        LexName();
      else if (c == '\'' || c == '"')
        LexString();
      else
        LexOperator(open);
    }
  }

  void LexName() {
    const size_t begin = at_;
    while (NameStart(Peek()) || Digit(Peek())) ++at_;
    Add(Kind::kName, std::string(source_.substr(begin, at_ - begin)), begin);
  }

  // Digits, between which single underscores may stand.
  void Digits(std::string& digits, bool hex = false) {
    for (;;) {
      if (hex ? HexDigit(Peek()) : Digit(Peek()))
        digits += source_[at_++];
      else if (Peek() == '_' && (hex ? HexDigit(Peek(1)) : Digit(Peek(1))))
        ++at_;
      else
        return;
    }
  }

  void LexNumber() {
    const size_t begin = at_;
    std::string digits;
    if (Peek() == '0' && std::string_view("xXoObB").find(Peek(1)) != std::string_view::npos &&
        Peek(1) != '\0' && (HexDigit(Peek(2)) || Peek(2) == '_')) {
      digits += source_[at_];
      digits += source_[at_ + 1];
      at_ += 2;
      Digits(digits, true);
      return Add(Kind::kInteger, digits, begin);
    }
    Digits(digits);
    bool real = false;
    // Behind a dot, the number is a subscript.
    const bool subscript = begin > 0 && source_[begin - 1] == '.';
    if (!subscript && Peek() == '.' && Digit(Peek(1))) {
      real = true;
      digits += source_[at_++];
      Digits(digits);
    }
    const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 2 : 1;
    if (!subscript && (Peek() == 'e' || Peek() == 'E') && Digit(Peek(sign))) {
      real = true;
      digits += source_.substr(at_, sign);
      at_ += sign;
      Digits(digits);
    }
    Add(real ? Kind::kFloat : Kind::kInteger, digits, begin);
  }

  void LexString() {
    const size_t begin = at_;
    const char quote = source_[at_++];
    std::string text;
    while (Peek() != quote) {
      if (at_ >= source_.size()) Fail(begin, "this string has no end");
      if (Peek() == '\\')
        Escape(text);
      else
        text += source_[at_++];
    }
    ++at_;
    Add(Kind::kString, std::move(text), begin);
  }

  void Escape(std::string& text) {
    const size_t begin = at_++;
    if (at_ >= source_.size()) Fail(begin, "this string has no end");
    const char c = source_[at_++];
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    if (c == '\n') return;
    if (const size_t letter = kLetters.find(c); letter != kLetters.npos) {
      text += kMeant[letter];
    } else if (c >= '0' && c <= '7') {
      uint32_t code = static_cast<uint32_t>(c - '0');
      for (int i = 0; i < 2 && Peek() >= '0' && Peek() <= '7'; ++i)
        code = code * 8 + static_cast<uint32_t>(source_[at_++] - '0');
      AppendCharacter(text, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      for (size_t i = 0; i < digits; ++i) {
        const char d = Peek();
        if (!HexDigit(d))
          Fail(begin, fmt::format("\\{} requires {} hexadecimal digits", c, digits));
        code = code * 16 + static_cast<uint32_t>(Digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
        ++at_;
      }
      if (code > 0x10ffff) Fail(begin, "this escape is not a character");
      if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
      AppendCharacter(text, code);
    } else if (c == 'N') {
      Fail(begin, "names of characters (\\N{...}) are not supported in chat templates");
    } else {
      text += {'\\', c};
    }
  }

  void LexOperator(std::vector<char>& open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                    [this](std::string_view symbol) { return Next(symbol); });
    if (found == std::end(kOperators)) {
      const size_t size = std::min(CharacterBytes(Peek()), source_.size() - at_);
      Fail(at_, fmt::format("unexpected character '{}'", source_.substr(at_, size)));
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) Fail(at_, fmt::format("unexpected '{}'", c));
      if (open.back() != c)
        Fail(at_, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    Add(Kind::kOperator, std::string(*found), at_);
    at_ += found->size();
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starts_ = true;  // the last tag ended with a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::string NormalizedSource(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<Token> Lex(std::string_view source) { return Lexer(source).Run(); }

}  // namespace mlc::text::jinja
