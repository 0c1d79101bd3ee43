// lib/runtime/model_pool.h - several instances of a model that serve one queue.
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
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/runtime/guarded_model.h"

namespace mlc::runtime {

struct PoolTask {
  std::map<std::string, Tensor> inputs;
  Worker::Timeout timeout;  // starts with the prediction; defaults to that of the instance
};

struct PoolStatistics {
  int64_t submitted = 0, rejected = 0, finished = 0;
  int64_t queue_high_water = 0;
  int64_t blocked = 0;    // submissions that waited for room in the queue
  LatencySummary waited;  // time of tasks in the queue
};

// Thread-safe. Each instance has its own thread; tasks start in order of submission.
class Pool {
 public:
  enum class WhenFull { kBlock, kRefuse };
  // Requires at least one instance. `queue` is the number of tasks that may wait, at least 1. Error
  // "resource-limit" if the threads cannot be created.
  Pool(std::vector<std::unique_ptr<GuardedModel>> instances, size_t queue);
  ~Pool();  // waits until all submitted tasks are finished

  // Error "resource-limit" if the queue is full, with kRefuse; "timeout" if it is full until `until`,
  // with kBlock. The future carries exceptions of the prediction.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  std::future<Prediction> Submit(PoolTask task, WhenFull when_full, Deadline until = {});
  // `done` is called on a thread of the pool. It must not throw, and may only submit with kRefuse.
  using Done = std::function<void(Prediction prediction, std::exception_ptr failure)>;
  void Submit(PoolTask task, WhenFull when_full, Done done, Deadline until = {});

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

}  // namespace mlc::runtime
