// backends/apple/awaited.h - what an asynchronous call gives its handler.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "backends/apple/errors.h"

namespace mlc::apple {

// Shared by who waits and by the handler, which may be called on any thread, before the call itself returns, or when nobody
// waits any more.
template <class T>
class Awaited {
 public:
  // In the handler: what `work` makes, or throws, is the result. The first counts.
  void Finish(std::string_view doing, const std::function<T()>& work) {
    std::optional<T> value;
    std::exception_ptr failure = Caught(doing, [&] { value.emplace(Enter(doing, work)); });
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
