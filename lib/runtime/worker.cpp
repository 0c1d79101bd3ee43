#include "lib/runtime/worker.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "lib/support/error.h"
#include "lib/support/memory_limits.h"
#include "lib/support/milliseconds.h"
#include "lib/support/scratch_folders.h"

namespace mlc::runtime {
namespace {

// Counters of the whole process. They have trivial destructors because abandoned threads outlive
// the destruction of statics.
std::atomic<int> hanging{0};   // abandoned threads that are still running
std::atomic<int> dropping{0};  // finished abandoned threads that are destroying their data
std::atomic<bool> ending{false};

// exit() destroys statics while threads are running. From then on, finishing threads must not
// destroy anything; threads already doing so get a moment to finish.
void End() {
  ending = true;
  for (int i = 0; i < 1000 && dropping > 0; ++i) usleep(1000);
}

}  // namespace

const std::shared_ptr<Abandoned>& Abandoned::OfProcess() {
  static const auto* of_process = new std::shared_ptr<Abandoned>(std::make_shared<Abandoned>());
  return *of_process;
}

int Abandoned::alive() const {
  std::lock_guard lock(mutex_);
  return alive_;
}

void Abandoned::Take(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const bool in_time =
      changed_.wait_until(lock, deadline, [this] { return taken_ < most_ || alive_ >= most_; });
  if (alive_ >= most_)
    throw NotBegun(Error("workers-hang", "{} abandoned predictions are still running", most_)
                       .Expected("fewer of them, because another prediction could hang, too")
                       .Help("restart the process; hanging threads cannot be terminated"));
  if (!in_time)
    throw NotBegun(
        Error("timeout", "the deadline expired before the prediction could start")
            .Note("the maximum number of concurrent predictions was running: {}", most_));
  ++taken_;
}

void Abandoned::Return() {
  std::lock_guard lock(mutex_);
  --taken_;
  changed_.notify_all();
}

void Abandoned::Hang() {
  ++hanging;
  std::lock_guard lock(mutex_);
  ++alive_;
  changed_.notify_all();
}

void Abandoned::ComeBack() {
  --hanging;
  std::lock_guard lock(mutex_);
  --alive_;
  --taken_;
  changed_.notify_all();
}

// The state shared by a thread and its worker; an abandoned thread owns it last.
struct Worker::Thread {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> task;
  enum { kIdle, kGiven, kDone, kStop } state = kIdle;
  bool abandoned = false;
  std::exception_ptr failure;
  std::thread handle;

  static void Main(std::shared_ptr<Thread> self, std::shared_ptr<Abandoned> places) {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(self->mutex);
        self->changed.wait(lock, [&] { return self->state == kGiven || self->state == kStop; });
        if (self->state == kStop) return;
        task = std::move(self->task);
      }
      std::exception_ptr failure;
      try {
        task();
      } catch (...) {
        failure = std::current_exception();
      }
      ++dropping;
      if (ending) {
        --dropping;
        while (true) pause();
      }
      // Cleared before the caller is notified, so that the caller owns the result exclusively.
      task = nullptr;
      std::unique_lock lock(self->mutex);
      if (!self->abandoned) {
        --dropping;
        self->failure = std::move(failure);
        self->state = kDone;
        self->changed.notify_all();
        continue;
      }
      lock.unlock();
      failure = nullptr;
      self = nullptr;
      places->ComeBack();
      places = nullptr;
      --dropping;
      return;
    }
  }
};

Worker::Worker(std::shared_ptr<Abandoned> abandoned) : abandoned_(std::move(abandoned)) {}

Worker::~Worker() {
  if (!thread_) return;
  {
    std::lock_guard lock(thread_->mutex);
    thread_->state = Thread::kStop;
    thread_->changed.notify_all();
  }
  thread_->handle.join();
}

TimeLimit::TimeLimit(Timeout asked) : timeout(asked) {
  constexpr std::chrono::nanoseconds kYear = std::chrono::hours(24 * 365);
  end = std::chrono::steady_clock::now() + std::min(asked.value_or(kYear), kYear);
}

void Worker::RequireThread() {
  if (thread_) return;
  try {
    RequireRoomForThreads(1);
    auto thread = std::make_shared<Thread>();
    thread->handle = std::thread(Thread::Main, thread, abandoned_);
    thread_ = std::move(thread);
  } catch (const std::bad_alloc&) {
    throw NotBegun(OutOfMemory("not enough memory for the thread of a prediction"));
  } catch (const std::system_error&) {
    throw NotBegun(Error("resource-limit", "the system cannot create a thread for a prediction"));
  }
}

void Worker::RunOnThread(const TimeLimit& limit, std::function<void()> task) {
  abandoned_->Take(limit.end);
  try {
    RequireThread();
  } catch (...) {
    abandoned_->Return();
    throw;
  }
  std::exception_ptr failure;
  {
    std::unique_lock lock(thread_->mutex);
    thread_->task = std::move(task);
    thread_->state = Thread::kGiven;
    thread_->changed.notify_all();
    // With a timeout of zero, the result is not checked: the task cannot have been taken yet.
    if (*limit.timeout <= limit.timeout->zero() ||
        !thread_->changed.wait_until(lock, limit.end,
                                     [&] { return thread_->state == Thread::kDone; })) {
      static const int once = std::atexit(End);
      static_cast<void>(once);
      thread_->abandoned = true;
      abandoned_->Hang();
      thread_->handle.detach();
      lock.unlock();
      thread_ = nullptr;
      throw Error("timeout", "no result within {:.6g} ms", Milliseconds(*limit.timeout));
    }
    failure = std::exchange(thread_->failure, nullptr);
    thread_->state = Thread::kIdle;
  }
  abandoned_->Return();
  if (failure) std::rethrow_exception(std::move(failure));
}

int ExitCodePastAbandoned(int code) {
  if (hanging == 0) return code;
  ScratchFolders::RemoveAll();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace mlc::runtime
