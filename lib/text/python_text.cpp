#include "lib/text/python_text.h"

#include <string.h>

#include <algorithm>

#include "lib/text/unicode.h"

namespace mlc::text {

namespace {

bool PythonSpace(char32_t character) {
  return IsSpace(character) || (character >= 0x1c && character <= 0x1f);
}

// The start of the last character of a text that is not empty.
size_t LastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

// std::string_view::find takes quadratic time for some texts.
size_t FindIn(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return text.npos;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : text.npos;
}

// Returns whether the character is one of `characters`.
bool OneOf(std::string_view character, std::string_view characters) {
  for (size_t at = 0; at < characters.size();) {
    const size_t begin = at;
    NextCharacter(characters, at);
    if (characters.substr(begin, at - begin) == character) return true;
  }
  return false;
}

bool LineEnd(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

size_t LeadingSpace(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    if (!PythonSpace(NextCharacter(text, next))) break;
    at = next;
  }
  return at;
}

std::string_view StripLeft(std::string_view text) { return text.substr(LeadingSpace(text)); }

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    const size_t last = LastCharacter(text);
    size_t at = last;
    if (!PythonSpace(NextCharacter(text, at))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view StripLeft(std::string_view text, std::string_view characters) {
  while (!text.empty()) {
    size_t at = 0;
    NextCharacter(text, at);
    if (!OneOf(text.substr(0, at), characters)) break;
    text.remove_prefix(at);
  }
  return text;
}

std::string_view StripRight(std::string_view text, std::string_view characters) {
  while (!text.empty()) {
    const size_t last = LastCharacter(text);
    if (!OneOf(text.substr(last), characters)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  if (from_right) {
    text = StripRight(text);
    while (!text.empty() && (most < 0 || std::ssize(parts) < most)) {
      size_t begin = text.size();
      while (begin > 0) {
        const size_t last = LastCharacter(text.substr(0, begin));
        size_t at = last;
        if (PythonSpace(NextCharacter(text, at))) break;
        begin = last;
      }
      parts.push_back(text.substr(begin));
      text = StripRight(text.substr(0, begin));
    }
    if (!text.empty()) parts.push_back(text);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  text = StripLeft(text);
  while (!text.empty() && (most < 0 || std::ssize(parts) < most)) {
    size_t end = 0;
    while (end < text.size()) {
      size_t at = end;
      if (PythonSpace(NextCharacter(text, at))) break;
      end = at;
    }
    parts.push_back(text.substr(0, end));
    text = StripLeft(text.substr(end));
  }
  if (!text.empty()) parts.push_back(text);
  return parts;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  if (from_right && most >= 0) {
    for (size_t at; std::ssize(parts) < most && (at = text.rfind(separator)) != text.npos;) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    }
    parts.push_back(text);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t begin = 0;
  for (size_t at; (most < 0 || std::ssize(parts) < most) &&
                  (at = FindIn(text, separator, begin)) != text.npos;) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t character = NextCharacter(text, at);
    if (!LineEnd(character)) continue;
    if (character == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

size_t CountOf(std::string_view text, std::string_view part) {
  if (part.empty()) {
    size_t characters = 1;
    for (size_t at = 0; at < text.size(); ++characters) NextCharacter(text, at);
    return characters;
  }
  size_t count = 0;
  for (size_t at = 0; (at = FindIn(text, part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t most) {
  std::string out;
  size_t begin = 0;
  if (from.empty()) {
    for (int64_t done = 0; most < 0 || done < most; ++done) {
      out += to;
      if (begin >= text.size()) break;
      const size_t start = begin;
      NextCharacter(text, begin);
      out += text.substr(start, begin - start);
    }
    return out.append(text.substr(std::min(begin, text.size())));
  }
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t at = FindIn(text, from, begin);
    if (at == text.npos) break;
    out.append(text.substr(begin, at - begin)).append(to);
    begin = at + from.size();
  }
  return out.append(text.substr(begin));
}

std::string Capitalized(std::string_view text) {
  if (text.empty()) return {};
  size_t at = 0;
  NextCharacter(text, at);
  return Uppercase(text.substr(0, at)) + Lowercase(text.substr(at));
}

std::string Titlecased(std::string_view text) {
  std::string out;
  bool inside = false;  // of a word
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t character = NextCharacter(text, at);
    const std::string_view one = text.substr(begin, at - begin);
    out += inside ? Lowercase(one) : Uppercase(one);
    inside = IsUpper(character) || IsLower(character) || IsTitle(character);
  }
  return out;
}

std::string CaseSwapped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t character = NextCharacter(text, at);
    const std::string_view one = text.substr(begin, at - begin);
    out += IsUpper(character)   ? Lowercase(one)
           : IsLower(character) ? Uppercase(one)
                                : std::string(one);
  }
  return out;
}

bool IsAll(std::string_view predicate, std::string_view text) {
  bool cased = false, previous = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = NextCharacter(text, at);
    const bool upper = IsUpper(c) || IsTitle(c), lower = IsLower(c);
    bool holds = true;
    if (predicate == "isalpha")
      holds = IsLetter(c);
    else if (predicate == "isalnum")
      holds = IsLetter(c) || IsNumber(c);
    else if (predicate == "isascii")
      holds = c < 0x80;
    else if (predicate == "isdigit" || predicate == "isdecimal")
      holds = IsDigit(c);
    else if (predicate == "isnumeric")
      holds = IsNumber(c);
    else if (predicate == "isspace")
      holds = PythonSpace(c);
    else if (predicate == "islower")
      holds = !upper;
    else if (predicate == "isupper")
      holds = !lower;
    else if (predicate == "istitle")
      holds = upper ? !previous : !lower || previous;
    if (!holds) return false;
    cased = cased || upper || lower;
    previous = upper || lower;
  }
  if (predicate == "islower" || predicate == "isupper" || predicate == "istitle") return cased;
  return !text.empty() || predicate == "isascii";
}

}  // namespace mlc::text
