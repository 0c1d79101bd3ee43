// lib/runtime/pool.h - several instances of a model that work off one queue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/runtime/guarded_model.h"

namespace mlc {

struct PoolTask {
  std::map<std::string, Tensor> inputs;
  Worker::Timeout timeout;  // from when it begins; absent: as the instance has it
};

struct PoolStatistics {
  int64_t submitted = 0, rejected = 0, finished = 0;
  int64_t queue_high_water = 0;
  int64_t blocked = 0;    // submissions that had to wait for room
  LatencySummary waited;  // of each task, in the queue
};

// Thread-safe. Each instance has a thread; tasks are begun in order of submission.
class Pool {
 public:
  enum class WhenFull { kBlock, kRefuse };
  // At least one instance; `queue`: how many tasks may wait, at least 1. Error "resource-limit" where
  // there are not so many threads.
  Pool(std::vector<std::unique_ptr<GuardedModel>> instances, size_t queue);
  ~Pool();  // when all that was submitted is done

  // Error "resource-limit" with kRefuse when the queue is full. What the prediction throws comes by
  // the future.
  std::future<Prediction> Submit(PoolTask task, WhenFull when_full);
  // `done` is called on a thread of the pool, must not throw, and may submit with kRefuse only.
  using Done = std::function<void(Prediction prediction, std::exception_ptr failure)>;
  void Submit(PoolTask task, WhenFull when_full, Done done);

  PoolStatistics statistics() const;

 private:
  struct Waiting {
    PoolTask task;
    Done done;
    std::chrono::steady_clock::time_point since;
  };
  void Work(GuardedModel& instance);
  void Close();
  const size_t queue_;
  std::vector<std::unique_ptr<GuardedModel>> instances_;
  mutable std::mutex mutex_;
  std::condition_variable work_, room_;
  std::deque<Waiting> waiting_;
  bool closing_ = false;
  PoolStatistics statistics_;
  LatencyHistogram waited_;
  std::vector<std::thread> threads_;
};

}  // namespace mlc
