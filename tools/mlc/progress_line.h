// tools/mlc/progress_line.h - the current progress on stderr: on a terminal, a line that appears
// when the work has lasted a second, is overwritten, and is erased in the end; with --progress plain,
// a line at most every second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "lib/support/progress.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {

class ProgressLine {
 public:
  // With --json, only --progress plain shows progress.
  explicit ProgressLine(const Session& session);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return form_ != ProgressForm::kNone; }
  // Shows the result of text(), at most ten times a second on a terminal. May be called by any thread,
  // as may Erase().
  void Show(const std::function<std::string()>& text);
  // Shows the progress of long work, while this object exists: "writing weights: 45 %, 1.2 of 2.6 GB,
  // 310 MB/s, 4 s left". Empty if nothing is shown. Its calls must not overlap.
  Progress Showing();
  // Removes the line from the terminal, before something else is printed.
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;
  std::string Describe(const ProgressStep& step);
  void Print(const std::string& line);
  // Shows the line of work that reported nothing since its first second.
  void ShowLate();

  const ProgressForm form_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // of the members up to late_
  std::condition_variable ended_;
  bool on_screen_ = false, ending_ = false;
  std::optional<Clock::time_point> last_;
  std::string early_;  // the last text of the first second
  std::thread late_;   // runs ShowLate
  // The step that is going on, since when, and its state then.
  std::string step_;
  Clock::time_point begin_;
  double share_ = 0;
  uint64_t done_ = 0;
};

}  // namespace mlc::driver
