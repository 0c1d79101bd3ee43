#include "lib/text/text_steps.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/support/utf8.h"
#include "lib/text/charsmap.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

using Kind = TextStep::Kind;
using Cut = TextStep::Cut;

// The ranges of Hugging Face's BertNormalizer; BERT itself has U+2B820 instead of U+2B920.
bool IsIdeograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

std::string Cleaned(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    char32_t character = NextCharacter(text, at);
    if (IsSpace(character)) {
      result.push_back(' ');
    } else if (character != 0 && character != 0xfffd && !IsControl(character)) {
      AppendCharacter(result, character);
    }
  }
  return result;
}

std::string WithSpacedIdeographs(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    char32_t character = NextCharacter(text, at);
    bool apart = IsIdeograph(character);
    if (apart) result.push_back(' ');
    AppendCharacter(result, character);
    if (apart) result.push_back(' ');
  }
  return result;
}

// The result may exceed `most` bytes by at most one replacement.
std::string Replaced(std::string_view text, const Pattern& pattern, const std::string& content,
                     size_t most) {
  std::vector<TextRange> found;
  pattern.FindAll(text, found);
  std::string result;
  result.reserve(text.size());
  size_t at = 0;
  for (TextRange range : found) {
    result.append(text.substr(at, range.begin - at)).append(content);
    at = range.end;
    if (result.size() > most) return result;
  }
  return result.append(text.substr(at));
}

std::string Stripped(std::string_view text, bool left, bool right) {
  size_t begin = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    size_t from = at;
    if (IsSpace(NextCharacter(text, at))) continue;
    begin = std::min(begin, from);
    end = at;
  }
  if (begin == text.size()) return {};
  size_t from = left ? begin : 0;
  return std::string(text.substr(from, (right ? end : text.size()) - from));
}

bool IsSpaceAt(std::string_view text) {
  size_t at = 0;
  return !text.empty() && IsSpace(NextCharacter(text, at));
}

// SentencePiece's treatment of spaces as implemented by llama.cpp: the prefix is added before the
// first non-space character, not before leading spaces.
std::string Spaced(std::string_view text, const TextStep& step) {
  std::string result;
  result.reserve(text.size() * 3 / 2);
  bool prefixed = false, in_word = false;
  for (char c : text) {
    if (c == ' ') {
      in_word = false;
      if (!step.merge) result.append(step.content);
      continue;
    }
    if (!in_word && ((step.left && !prefixed) || step.merge)) {
      result.append(step.content);
      prefixed = true;
    }
    in_word = true;
    result.push_back(c);
  }
  if (step.right) result.append(step.content);
  return result;
}

std::string Mapped(std::string_view text, const TextStep& step, const Pattern& pattern, bool first,
                   size_t most) {
  switch (step.kind) {
    case Kind::kNfc:
      return Normalized(text, NormalForm::kNfc);
    case Kind::kNfd:
      return Normalized(text, NormalForm::kNfd);
    case Kind::kNfkc:
      return Normalized(text, NormalForm::kNfkc);
    case Kind::kNfkd:
      return Normalized(text, NormalForm::kNfkd);
    case Kind::kLowercase:
      return Lowercase(text);
    case Kind::kStripAccents:
      return WithoutAccents(text);
    case Kind::kBaseCharacters:
      return BaseCharacters(text);
    case Kind::kClean:
      return Cleaned(text);
    case Kind::kSpaceIdeographs:
      return WithSpacedIdeographs(text);
    case Kind::kReplace:
      return Replaced(text, pattern, step.content, most);
    case Kind::kPrepend:
      if (text.empty() || (step.first_only && !first) ||
          (step.unless_there && text.starts_with(step.content)))
        return std::string(text);
      return step.content + std::string(text);
    case Kind::kStrip:
      return Stripped(text, step.left, step.right);
    case Kind::kCharsmap:
      return ApplyCharsmap(step.content, text, most);
    case Kind::kSpaces:
      return Spaced(text, step);
    case Kind::kSplit:
      break;
  }
  return std::string(text);
}

// Splits [0, size) at `matches` and appends the ranges, shifted by `base`.
void CutAt(const std::vector<TextRange>& matches, size_t size, const TextStep& step, size_t base,
           std::vector<TextRange>& parts) {
  const size_t first = parts.size();
  TextRange held;  // kWithNext: the match that starts the next piece
  bool holds = false, match_before = false, any = false;
  auto push = [&](TextRange part) { parts.push_back({base + part.begin, base + part.end}); };
  auto take = [&](TextRange part, bool match) {
    if (step.invert) match = !match;
    switch (step.cut) {
      case Cut::kIsolated:
        push(part);
        break;
      case Cut::kRemoved:
        if (!match) push(part);
        break;
      case Cut::kWithPrevious:
        if (match && !match_before && any) {
          parts.back().end = base + part.end;
        } else {
          push(part);
        }
        break;
      case Cut::kWithNext:
        // Of consecutive matches, only the last one joins the text that follows.
        if (match) {
          if (holds) push(held);
          held = part;
          holds = true;
        } else {
          push({holds ? held.begin : part.begin, part.end});
          holds = false;
        }
        break;
      case Cut::kContiguous:
        if (any && match == match_before) {
          parts.back().end = base + part.end;
        } else {
          push(part);
        }
        break;
    }
    match_before = match;
    any = true;
  };
  size_t at = 0;
  for (TextRange range : matches) {
    if (range.begin > at) take({at, range.begin}, false);
    take(range, true);
    at = range.end;
  }
  if (at < size) take({at, size}, false);
  if (holds) push(held);
  parts.erase(std::remove_if(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end(),
                             [](TextRange part) { return part.begin == part.end; }),
              parts.end());
}

}  // namespace

TextSteps::TextSteps(const std::vector<TextStep>& steps) {
  for (const TextStep& step : steps) {
    bool has_pattern = step.kind == Kind::kReplace || step.kind == Kind::kSplit;
    if (step.kind == Kind::kCharsmap) RequireCharsmap(step.content);
    steps_.push_back({step, Pattern(step.pattern, has_pattern ? step.syntax : Syntax::kLiteral)});
    bool bytes = step.kind == Kind::kPrepend || step.kind == Kind::kSpaces ||
                 (has_pattern && step.syntax == Syntax::kLiteral);
    if (!bytes) needs_utf8_ = true;
  }
}

void TextSteps::Apply(TextPieces& pieces) const {
  if (needs_utf8_ && FirstBadUtf8(pieces.text) != std::string::npos) {
    // The text is still one piece.
    pieces.text = ValidUtf8(pieces.text);
    pieces.ranges = {{0, pieces.text.size()}};
  }
  // Decomposition makes a character at most eleven times as long in bytes.
  const size_t most = std::min(64 * pieces.text.size() + (size_t{64} << 10), size_t{1} << 30);
  std::vector<TextRange> matches, ranges;
  for (const Step& step : steps_) {
    ranges.clear();
    if (step.step.kind == Kind::kSplit) {
      for (TextRange range : pieces.ranges) {
        matches.clear();
        size_t size = range.end - range.begin;
        step.pattern.FindAll(std::string_view(pieces.text).substr(range.begin, size), matches);
        CutAt(matches, size, step.step, range.begin, ranges);
      }
      if (ranges.empty() || ranges[0].begin > pieces.ranges[0].begin) pieces.begins_text = false;
    } else {
      std::string text;
      bool first = pieces.begins_text;
      for (TextRange range : pieces.ranges) {
        size_t begin = text.size();
        text += Mapped(std::string_view(pieces.text).substr(range.begin, range.end - range.begin),
                       step.step, step.pattern, first, most);
        if (text.size() > most)
          throw Error("resource-limit", "normalization expands the text to more than {} bytes",
                      most);
        if (first && step.step.kind == Kind::kStrip && step.step.left)
          pieces.begins_text = !IsSpaceAt(
              std::string_view(pieces.text).substr(range.begin, range.end - range.begin));
        first = false;
        ranges.push_back({begin, text.size()});
      }
      pieces.text = std::move(text);
    }
    pieces.ranges.swap(ranges);
  }
}

}  // namespace mlc::text
