// lib/support/progress.h - one line on stderr that says how far a long job is; silent unless stderr
// is a terminal.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace mlc {

// Shows "label  42%" at most ten times a second after half a second, and clears the line at the
// end. One at a time.
class Progress {
 public:
  Progress(std::string label, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Advance(int64_t amount = 1);  // from any thread

 private:
  const std::string label_;
  const int64_t total_;
  const bool enabled_;
  std::atomic<int64_t> done_ = 0, next_;  // next_: when to write again, in milliseconds
  std::atomic<bool> shown_ = false;
};

}  // namespace mlc
