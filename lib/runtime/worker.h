// lib/runtime/worker.h - a thread that is left behind when what it does takes too long.
//
// No thread can be ended from outside without taking the process along. One whose time is up is
// *abandoned*: its caller goes on at once, the next task has a new thread, and when the old one
// comes back, if ever, what it made is dropped and it ends. So a task owns all that it reads and
// writes: values, shared tensors, shared models; no pointer or reference to what its caller owns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "lib/support/error.h"

namespace mlc {

// A task that was refused before it began: what it would have used is as it was.
class NotBegun : public Error {
 public:
  explicit NotBegun(Error error) : Error(std::move(error)) {}
};

// Bounds the threads that are abandoned and still alive. There is one bound of the process, since
// memory, threads and a device that hangs are the process's, whichever model was asked. Who works
// with more than four at once makes one that is larger: each task needs a place in which to hang.
class Abandoned {
 public:
  static constexpr int kMost = 4;
  explicit Abandoned(int most = kMost) : most_(most) {}
  static const std::shared_ptr<Abandoned>& OfProcess();

  int alive() const;
  int most() const { return most_; }

 private:
  friend class Worker;
  // Takes a place; waits while all are taken by tasks whose time is not up yet, until the deadline
  // at most. NotBegun: "workers-hang" when there is a hanging task in each, "timeout".
  void Take(std::chrono::steady_clock::time_point deadline);
  void Return();
  void Hang();      // a task in a place is abandoned
  void ComeBack();  // it ended, and with it its place is free
  const int most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int alive_ = 0, taken_ = 0;  // taken: by tasks that run, abandoned or not
};

// How long a caller waits, from when this is made; several waits share one.
struct TimeLimit {
  using Timeout = std::optional<std::chrono::nanoseconds>;
  explicit TimeLimit(Timeout asked);
  bool over() const { return std::chrono::steady_clock::now() >= end; }
  // A year from now where there is none, or one beyond that: no sum overflows.
  std::chrono::steady_clock::time_point end;
  Timeout timeout;  // as it was asked for
};

// Runs one task at a time; not for several callers at once. Its thread is made by the first task.
class Worker {
 public:
  explicit Worker(std::shared_ptr<Abandoned> abandoned = Abandoned::OfProcess());
  ~Worker();  // waits for the thread that it has, which is idle, and for no abandoned one
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  using Timeout = TimeLimit::Timeout;
  // What `task` returns or throws. Error "timeout" when it takes longer. NotBegun: "timeout" when
  // all places are taken for so long; "workers-hang" when as many threads as may be are abandoned;
  // "resource-limit" when there is no thread to be had. Without a timeout it runs on the caller's
  // thread.
  template <class Task>
  auto Run(Task task, Timeout timeout) -> decltype(task()) {
    return RunWithin(TimeLimit(timeout), std::move(task));
  }
  // The same within a limit that has begun.
  template <class Task>
  auto RunWithin(const TimeLimit& limit, Task task) -> decltype(task()) {
    using Result = decltype(task());
    if (!limit.timeout) return task();
    if constexpr (std::is_void_v<Result>) {
      RunOnThread(limit, std::move(task));
    } else {
      auto result = std::make_shared<std::optional<Result>>();
      RunOnThread(limit, [result, task = std::move(task)]() mutable { result->emplace(task()); });
      return std::move(**result);
    }
  }

 private:
  struct Thread;
  void RunOnThread(const TimeLimit& limit, std::function<void()> task);
  void RequireThread();
  std::shared_ptr<Abandoned> abandoned_;
  std::shared_ptr<Thread> thread_;
};

// For the end of main, in the place of `return code`: where abandoned threads are alive, no
// destructor may run under them, and the process ends without (what C's streams hold is written).
int ExitCodePastAbandoned(int code);

}  // namespace mlc
