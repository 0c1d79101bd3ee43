#include "lib/runtime/model_pool.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "lib/support/error.h"
#include "lib/support/memory_limits.h"
#include "lib/support/milliseconds.h"

namespace mlc::runtime {

Pool::Pool(std::vector<std::unique_ptr<GuardedModel>> instances, size_t queue)
    : queue_(queue), instances_(std::move(instances)) {
  MLC_CHECK(!instances_.empty() && queue_ > 0, "a pool of {} models with a queue of {}",
            instances_.size(), queue_);
  threads_.reserve(instances_.size());
  try {
    for (const auto& instance : instances_) {
      RequireRoomForThreads(1);
      threads_.emplace_back([this, &instance] { Work(*instance); });
    }
  } catch (const std::bad_alloc&) {
    Close();
    throw OutOfMemory(fmt::format("not enough memory for the threads of {} concurrent predictions",
                                  instances_.size()));
  } catch (const std::system_error&) {
    Close();
    throw Error("resource-limit",
                "the system provides only {} threads for {} concurrent predictions",
                threads_.size(), instances_.size())
        .Help("use fewer concurrent predictions, or raise the process limit (ulimit -u)");
  }
}

Pool::~Pool() { Close(); }

void Pool::Close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::future<Prediction> Pool::Submit(PoolTask task, WhenFull when_full, Deadline until) {
  auto promise = std::make_shared<std::promise<Prediction>>();
  std::future<Prediction> future = promise->get_future();
  const Done done = [promise](Prediction made, std::exception_ptr failure) {
    if (failure)
      promise->set_exception(std::move(failure));
    else
      promise->set_value(std::move(made));
  };
  Submit(std::move(task), when_full, done, until);
  return future;
}

void Pool::Submit(PoolTask task, WhenFull when_full, Done done, Deadline until) {
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= queue_ && when_full == WhenFull::kRefuse) {
    ++statistics_.rejected;
    throw Error("resource-limit", "the queue is full: {} predictions are waiting", waiting_.size())
        .Help("submit fewer predictions at a time, or wait until some are finished");
  }
  if (waiting_.size() >= queue_) {
    ++statistics_.blocked;
    auto room = [this] { return waiting_.size() < queue_; };
    if (!until) room_.wait(lock, room);
    if (until && !room_.wait_until(lock, *until, room)) {
      ++statistics_.rejected;
      throw Error("timeout", "the deadline expired while the queue was full");
    }
  }
  waiting_.push_back({std::move(task), std::move(done), std::chrono::steady_clock::now()});
  ++statistics_.submitted;
  statistics_.queue_high_water =
      std::max(statistics_.queue_high_water, static_cast<int64_t>(waiting_.size()));
  work_.notify_one();
}

void Pool::Work(GuardedModel& instance) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    waited_.Add(MillisecondsSince(next.since));
    room_.notify_one();
    lock.unlock();
    Prediction made;
    std::exception_ptr failure;
    try {
      made = next.task.timeout ? instance.Run(next.task.inputs, nullptr, next.task.timeout)
                               : instance.Run(next.task.inputs);
    } catch (...) {
      failure = std::current_exception();
    }
    next.done(std::move(made), std::move(failure));
    next = {};
    lock.lock();
    ++statistics_.finished;
  }
}

PoolStatistics Pool::statistics() const {
  std::lock_guard lock(mutex_);
  PoolStatistics statistics = statistics_;
  statistics.waited = waited_.Summary();
  return statistics;
}

}  // namespace mlc::runtime
