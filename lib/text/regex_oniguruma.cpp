// Oniguruma, for the patterns of a tokenizer.json.
#include <oniguruma.h>

#include <algorithm>
#include <new>

#include "lib/text/regex_engines.h"

namespace mlc::text {
namespace {

// The nesting depth of groups; the parser is recursive.
constexpr unsigned kMostDepth = 250;
// The limit on backtracking. The library does not report the steps of a search, so a search that
// fails with a small limit is repeated with a larger one, which is then charged in full.
constexpr uint64_t kFewRetries = 1000, kTimesMore = 16;
// The maximum size of the backtracking stack of a match.
constexpr unsigned kMostStack = 4'000'000;

std::string Message(int code, OnigErrorInfo* info = nullptr) {
  UChar text[ONIG_MAX_ERROR_MESSAGE_LEN + 1] = {};
  int size = info ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(std::max(size, 0))};
}

const UChar* Bytes(std::string_view text) { return reinterpret_cast<const UChar*>(text.data()); }

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

void FreeRegion(OnigRegion* region) { onig_region_free(region, 1); }

// Working memory of a match, one per thread.
struct Room {
  std::unique_ptr<OnigRegion, Freed<FreeRegion>> region{onig_region_new()};
  std::unique_ptr<OnigMatchParam, Freed<onig_free_match_param>> limits{onig_new_match_param()};
  Room() {
    if (!region || !limits) throw std::bad_alloc();
    onig_initialize_match_param(limits.get());
    onig_set_match_stack_limit_size_of_match_param(limits.get(), kMostStack);
  }
};

class Oniguruma : public Pattern::Engine {
 public:
  explicit Oniguruma(const std::string& expression) : expression_(expression) {
    static const bool kReady = [] {
      OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
      onig_initialize(encodings, 1);
      return onig_set_parse_depth_limit(kMostDepth) == ONIG_NORMAL;
    }();
    regex_t* code = nullptr;
    OnigErrorInfo info = {};
    int result = kReady
                     ? onig_new(&code, Bytes(expression), Bytes(expression) + expression.size(),
                                ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info)
                     : ONIGERR_MEMORY;
    code_.reset(code);
    if (result == ONIGERR_MEMORY) throw std::bad_alloc();
    if (result != ONIG_NORMAL) RefuseExpression(expression, Message(result, &info));
  }

  bool Find(std::string_view text, size_t from, TextRange& match, uint64_t& steps) const override {
    thread_local Room room;
    const UChar *begin = Bytes(text), *end = begin + text.size();
    int result = 0;
    for (uint64_t retries = kFewRetries;; retries *= kTimesMore) {
      onig_set_retry_limit_in_match_of_match_param(room.limits.get(), retries);
      onig_set_retry_limit_in_search_of_match_param(room.limits.get(), retries);
      result = onig_search_with_param(code_.get(), begin, end, begin + from, end, room.region.get(),
                                      ONIG_OPTION_NONE, room.limits.get());
      if (result != ONIGERR_RETRY_LIMIT_IN_MATCH_OVER &&
          result != ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER)
        break;
      if (steps < retries * kTimesMore) break;
      steps -= retries * kTimesMore;
    }
    if (result == ONIG_MISMATCH) return false;
    if (result == ONIGERR_MEMORY) throw std::bad_alloc();
    if (result < 0) StopExpression(expression_, Message(result));
    match = {static_cast<size_t>(room.region->beg[0]), static_cast<size_t>(room.region->end[0])};
    return true;
  }

 private:
  std::string expression_;
  std::unique_ptr<regex_t, Freed<onig_free>> code_;
};

}  // namespace

std::unique_ptr<const Pattern::Engine> CompileOniguruma(const std::string& expression) {
  return std::make_unique<Oniguruma>(expression);
}

}  // namespace mlc::text
