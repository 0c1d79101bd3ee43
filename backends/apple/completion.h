// backends/apple/completion.h - waits for the result of an asynchronous call.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "backends/apple/coreml_errors.h"

namespace mlc::apple {

// Shared between the waiting thread and the completion handler. The handler may run on any thread,
// before the call returns, or after the wait has ended.
template <class T>
class Completion {
 public:
  // Called by the handler: the value or exception of `work` becomes the result. Only the first call
  // counts.
  void Finish(std::string_view doing, const std::function<T()>& work) {
    std::optional<T> value;
    std::exception_ptr failure =
        CaptureException(doing, [&] { value.emplace(Enter(doing, work)); });
    std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    value_ = std::move(value);
    failure_ = failure;
    changed_.notify_all();
  }
  T Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (failure_) std::rethrow_exception(failure_);
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::optional<T> value_;
  std::exception_ptr failure_;
};

}  // namespace mlc::apple
