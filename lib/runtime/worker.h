// lib/runtime/worker.h - runs tasks on a thread that is abandoned when its deadline expires.
//
// A thread cannot be terminated from outside without ending the process. Therefore a thread whose
// time is up is *abandoned*: the caller continues immediately, the next task gets a new thread, and
// when the old thread finishes, if ever, its result is dropped. A task must own all that it reads
// and writes (values, shared tensors, shared models), and must not hold pointers or references to
// data of its caller.
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

namespace mlc::runtime {

// The error of a task that was rejected before it started. Its arguments are unmodified.
class NotBegun : public Error {
 public:
  explicit NotBegun(Error error) : Error(std::move(error)) {}
};

// Limits the number of abandoned threads that are still alive. The limit is shared by the process,
// because memory, threads and devices are. A user with more than four concurrent tasks creates a
// larger one, since every running task needs a slot.
class Abandoned {
 public:
  static constexpr int kMost = 4;
  explicit Abandoned(int most = kMost) : most_(most) {}
  static const std::shared_ptr<Abandoned>& OfProcess();

  int alive() const;
  int most() const { return most_; }

 private:
  friend class Worker;
  // Takes a slot; blocks until `deadline` while every slot is taken by a task that is not overdue.
  // NotBegun: "workers-hang" if every slot holds a hanging task, "timeout".
  void Take(std::chrono::steady_clock::time_point deadline);
  void Return();
  void Hang();      // the task in a slot was abandoned
  void ComeBack();  // it finished and frees its slot
  const int most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int alive_ = 0, taken_ = 0;  // taken_: slots of running tasks, abandoned or not
};

// How long a caller waits, measured from construction; several waits may share one limit.
struct TimeLimit {
  using Timeout = std::optional<std::chrono::nanoseconds>;
  explicit TimeLimit(Timeout asked);
  bool over() const { return std::chrono::steady_clock::now() >= end; }
  // At most one year from now, also without a timeout, so that additions do not overflow.
  std::chrono::steady_clock::time_point end;
  Timeout timeout;  // the requested timeout
};

// Runs one task at a time, for one caller at a time. The first task creates the thread.
class Worker {
 public:
  explicit Worker(std::shared_ptr<Abandoned> abandoned = Abandoned::OfProcess());
  ~Worker();  // joins its idle thread, but no abandoned ones
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  using Timeout = TimeLimit::Timeout;
  // Returns the result of `task` or throws its exception. Error "timeout" if it takes longer.
  // NotBegun: "timeout" if no slot becomes free in time; "workers-hang" if the maximum number of
  // threads is abandoned; "resource-limit" if no thread can be created. Without a timeout, the task
  // runs on the caller's thread.
  template <class Task>
  auto Run(Task task, Timeout timeout) -> decltype(task()) {
    return RunWithin(TimeLimit(timeout), std::move(task));
  }
  // The same, with a limit that is already running.
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

// Use at the end of main instead of `return code`. If abandoned threads are alive, destructors must
// not run, so the process ends without them; the streams of C are flushed.
int ExitCodePastAbandoned(int code);

}  // namespace mlc::runtime
