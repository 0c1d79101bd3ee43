// tools/mlc/progress_line.h - what is live on a terminal: a line of it, written over again and again, gone
// with this.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "lib/support/error.h"

namespace mlc {

class ProgressLine {
 public:
  ~ProgressLine() {
    if (live()) fmt::print(stderr, "\r\033[K");
  }
  // Whether anybody sees it.
  static bool live() { return isatty(STDERR_FILENO) != 0; }
  // What text() says, ten times a second at most.
  template <class Text>
  void Show(Text text) {
    constexpr auto kEvery = std::chrono::milliseconds(100);
    const auto now = std::chrono::steady_clock::now();
    if (!live() || (last_ && now - *last_ < kEvery)) return;
    last_ = now;
    fmt::print(stderr, "\r\033[K{}", text());
    std::fflush(stderr);
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace mlc
