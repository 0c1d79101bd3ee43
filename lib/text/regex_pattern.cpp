#include "lib/text/regex_pattern.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/text/regex_engines.h"
#include "lib/text/unicode.h"

namespace mlc::text {
namespace {

// The limits on all searches of one text. Patterns of published tokenizers take a few steps per
// byte.
constexpr uint64_t kMostSteps = 100'000'000, kMostStepsPerByte = 1000;

}  // namespace

void RefuseExpression(const std::string& expression, const std::string& why) {
  throw Error("unsupported-tokenizer", "regular expression {} is not supported: {}", expression,
              why);
}

void StopExpression(const std::string& expression, const std::string& why) {
  throw Error("resource-limit", "regular expression {} of the tokenizer: {}", expression, why);
}

Pattern::Pattern(const std::string& text, Syntax syntax) : text_(text) {
  if (syntax == Syntax::kLiteral) return;
  if (text.size() > 65536) RefuseExpression("of the file", "it has more than 65,536 bytes");
  engine_ = syntax == Syntax::kPcre ? CompilePcre(text) : CompileOniguruma(text);
}

void Pattern::FindAll(std::string_view text, std::vector<TextRange>& found) const {
  if (!engine_) {
    if (text_.empty()) return;
    for (size_t at = 0; (at = text.find(text_, at)) != std::string_view::npos; at += text_.size())
      found.push_back({at, at + text_.size()});
    return;
  }
  if (text.empty()) return;
  uint64_t steps = kMostSteps + kMostStepsPerByte * text.size();
  size_t last = std::string_view::npos;  // end of the previous match
  for (size_t at = 0; at <= text.size();) {
    TextRange match;
    if (!engine_->Find(text, at, match, steps)) return;
    // \K can place the start after the end, or before the start of the search.
    match.end = std::max(at, match.end);
    match.begin = std::clamp(match.begin, at, match.end);
    if (match.begin == match.end && match.end == last) {
      at += at < text.size() ? CharacterBytes(text[at]) : 1;
      continue;
    }
    found.push_back(match);
    at = last = match.end;
  }
}

}  // namespace mlc::text
