#include "lib/support/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace mlc {

namespace {
int64_t Now() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}
bool IsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
}
constexpr const char* kClearLine = "\r\x1b[K";
}  // namespace

Progress::Progress(std::string label, int64_t total)
    : label_(std::move(label)),
      total_(std::max<int64_t>(total, 1)),
      enabled_(IsTerminal()),
      next_(Now() + 500) {}

Progress::~Progress() {
  if (shown_) std::fputs(kClearLine, stderr);
}

void Progress::Advance(int64_t amount) {
  int64_t done = done_ += amount, next = next_;
  if (!enabled_) return;
  int64_t now = Now();
  // Who moves the time of the next line writes this one.
  if (now < next || !next_.compare_exchange_strong(next, now + 100)) return;
  shown_ = true;
  double share = std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
  std::fprintf(stderr, "%s%s  %3.0f%%", kClearLine, label_.c_str(), share * 100);
}

}  // namespace mlc
