#define PCRE2_CODE_UNIT_WIDTH 8
#include "lib/text/pattern.h"

#include <pcre2.h>

#include <algorithm>

#include "lib/support/error.h"
#include "lib/text/unicode.h"

namespace mlc {
namespace {

// PCRE's \s has U+180E, which is no white space since Unicode 6.3; its \w lacks marks. These are
// Oniguruma's, which reads the expressions of tokenizer.json.
constexpr char kSpaces[] = "\\t-\\r\\x20\\x{85}\\p{Z}";
constexpr char kWords[] = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

[[noreturn]] void Refuse(const std::string& expression, const std::string& why) {
  throw Error("unsupported-tokenizer",
              fmt::format("the regular expression {} cannot be used: {}", expression, why));
}

// What the stack of a match may take, and its steps: no more than a few for each byte, so that an
// expression that takes exponential or cubic time is an error before it is a nuisance.
constexpr size_t kMostStack = size_t{64} << 20;
uint32_t MostSteps(size_t bytes) {
  return static_cast<uint32_t>(std::min<size_t>(100'000 + 32 * bytes, UINT32_MAX));
}

// The expression as PCRE must have it.
std::string ForPcre(const std::string& expression) {
  std::string result;
  bool inside = false;  // a class
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      char next = expression[++i];
      const char* set = next == 's' || next == 'S'   ? kSpaces
                        : next == 'w' || next == 'W' ? kWords
                                                     : nullptr;
      if (!inside && (next == 'b' || next == 'B')) {
        std::string boundary = fmt::format("(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}])", kWords);
        result += (next == 'b' ? "(?:" : "(?!") + boundary + ")";
      } else if (!set) {
        result += {c, next};
      } else if (inside) {
        if (next == 'S' || next == 'W') Refuse(expression, "\\S or \\W in a class");
        result += set;
      } else {
        result += fmt::format("[{}{}]", next == 'S' || next == 'W' ? "^" : "", set);
      }
    } else if (inside) {
      if (c == '[' && (i + 1 == expression.size() || expression[i + 1] != ':'))
        Refuse(expression, "a class in a class");
      if (expression.compare(i, 2, "&&") == 0) Refuse(expression, "an intersection of classes");
      if (c == '[') {  // [:name:], in a class
        size_t end = expression.find(":]", i + 2);
        if (end == std::string::npos) Refuse(expression, "a class in a class");
        result += expression.substr(i, end + 2 - i);
        i = end + 1;
        continue;
      }
      if (c == ']') inside = false;
      result += c;
    } else {
      result += c;
      if (c == '[') {
        inside = true;
        if (i + 1 < expression.size() && expression[i + 1] == '^') result += expression[++i];
        if (i + 1 < expression.size() && expression[i + 1] == ']') {
          result += "\\]";
          ++i;
        }
      }
    }
  }
  return result;
}

std::string Message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

// What a match is worked out in: one for each thread.
struct Room {
  std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>> data{
      pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(size_t{64} << 10, kMostStack, nullptr)};
  std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>> context{
      pcre2_match_context_create(nullptr)};
  Room() {
    if (!data || !context) throw std::bad_alloc();
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_heap_limit(context.get(), 256 << 10);  // KiB
  }
};

}  // namespace

struct Pattern::Code {
  std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> pcre;
};

Pattern Pattern::Regex(const std::string& expression) {
  if (expression.size() > 65536) Refuse("of the file", "it has more than 65,536 bytes");
  std::string text = ForPcre(expression);
  int error = 0;
  size_t offset = 0;
  std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  auto code = std::make_shared<Code>();
  code->pcre.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, context.get()));
  if (!code->pcre) Refuse(expression, Message(error));
  // Where there is no such compiler, or no memory that may be executed, the interpreter is used.
  pcre2_jit_compile(code->pcre.get(), PCRE2_JIT_COMPLETE);
  Pattern pattern;
  pattern.code_ = std::move(code);
  pattern.text_ = expression;
  return pattern;
}

Pattern Pattern::Literal(std::string text) {
  Pattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

void Pattern::FindAll(std::string_view text, std::vector<TextRange>& found) const {
  if (!code_) {
    if (text_.empty()) return;
    for (size_t at = 0; (at = text.find(text_, at)) != std::string_view::npos; at += text_.size())
      found.push_back({at, at + text_.size()});
    return;
  }
  thread_local Room room;
  const PCRE2_SIZE* ovector = pcre2_get_ovector_pointer(room.data.get());
  pcre2_set_match_limit(room.context.get(), MostSteps(text.size()));
  pcre2_set_depth_limit(room.context.get(), MostSteps(text.size()));
  for (size_t at = 0; at <= text.size();) {
    auto match = [&](uint32_t options) {
      return pcre2_match(code_->pcre.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         at, PCRE2_NO_UTF_CHECK | options, room.data.get(), room.context.get());
    };
    int result = match(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0)
      throw Error("resource-limit", fmt::format("the regular expression {} of the tokenizer: {}",
                                                text_, Message(result)));
    // \K can put the beginning behind the end, or before where the search began.
    TextRange range = {std::clamp(ovector[0], at, std::max(at, ovector[1])),
                       std::max(at, ovector[1])};
    found.push_back(range);
    at = range.end;
    if (range.begin == range.end) at += at < text.size() ? CharacterBytes(text[at]) : 1;
  }
}

}  // namespace mlc
