// tools/mlc/progress_line.h - a line on the terminal that is overwritten with the current progress,
// and erased by the destructor.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "lib/support/error.h"
#include "lib/support/progress.h"

namespace mlc::driver {

class ProgressLine {
 public:
  ~ProgressLine() {
    if (live()) fmt::print(stderr, "\r\033[K");
  }
  // Returns whether stderr is a terminal.
  static bool live() { return isatty(STDERR_FILENO) != 0; }
  // Shows the result of text(), at most ten times a second.
  template <class Text>
  void Show(Text text) {
    constexpr auto kEvery = std::chrono::milliseconds(100);
    const auto now = std::chrono::steady_clock::now();
    if (!live() || (last_ && now - *last_ < kEvery)) return;
    last_ = now;
    fmt::print(stderr, "\r\033[K{}", text());
    std::fflush(stderr);
  }

  // Shows the progress of long work, while this object exists.
  Progress Showing() {
    if (!live()) return {};
    return [this](std::string_view step, double share) {
      Show([&] { return fmt::format("{}: {:.0f} %", step, 100 * share); });
    };
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace mlc::driver
