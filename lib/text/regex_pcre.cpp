// PCRE2, for the patterns of our own tables.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "lib/text/regex_engines.h"

namespace mlc::text {
namespace {

// \s of PCRE includes U+180E, which is not white space since Unicode 6.3.
constexpr char kSpaces[] = "\\t-\\r\\x20\\x{85}\\p{Z}";

// Limits on the stack and the steps of a match: a few steps per byte, so that a pattern with
// exponential or cubic running time fails early.
constexpr size_t kMostStack = size_t{64} << 20;
uint32_t MostSteps(size_t bytes) {
  return static_cast<uint32_t>(std::min<size_t>(100'000 + 32 * bytes, UINT32_MAX));
}

// Expands \s and \S in the expression.
std::string WithSpaces(const std::string& expression) {
  std::string result;
  bool inside = false;  // in a character class
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      char next = expression[++i];
      if (next != 's' && next != 'S') {
        result += {c, next};
      } else if (inside) {
        if (next == 'S') RefuseExpression(expression, "\\S in a class");
        result += kSpaces;
      } else {
        result += (next == 'S' ? "[^" : "[") + std::string(kSpaces) + "]";
      }
      continue;
    }
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    result += c;
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

// Working memory of a match, one per thread.
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

class Pcre : public Pattern::Engine {
 public:
  explicit Pcre(const std::string& expression) : expression_(expression) {
    std::string text = WithSpaces(expression);
    int error = 0;
    size_t offset = 0;
    std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>> context(
        pcre2_compile_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset,
                              context.get()));
    if (!code_) RefuseExpression(expression, Message(error));
    // Without a JIT compiler for this machine, or without executable memory, PCRE2 falls back to
    // its interpreter.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  bool Find(std::string_view text, size_t from, TextRange& match, uint64_t&) const override {
    thread_local Room room;
    pcre2_set_match_limit(room.context.get(), MostSteps(text.size()));
    pcre2_set_depth_limit(room.context.get(), MostSteps(text.size()));
    auto run = [&](uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, room.data.get(), room.context.get());
    };
    int result = run(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) StopExpression(expression_, Message(result));
    const PCRE2_SIZE* ovector = pcre2_get_ovector_pointer(room.data.get());
    match = {ovector[0], ovector[1]};
    return true;
  }

 private:
  std::string expression_;
  std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> code_;
};

}  // namespace

std::unique_ptr<const Pattern::Engine> CompilePcre(const std::string& expression) {
  return std::make_unique<Pcre>(expression);
}

}  // namespace mlc::text
