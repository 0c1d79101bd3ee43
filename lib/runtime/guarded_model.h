// lib/runtime/guarded_model.h - a model that may throw, hang and write late, and whose caller need not care.
//
// Predictions run on a worker with a deadline (worker.h), are counted (telemetry.h) and admitted by a
// circuit breaker. An instance that hung or threw is given up with its worker, and the next
// prediction loads another. While the breaker is open the fallback answers, and its results say so.
//
// The deadline of a prediction covers the load that it needs and the wait for others. A load goes on
// without the caller whose time is up, and who comes later finds what it made: a model that takes
// longer to load than to be waited for is there in the end, and what hangs takes one place.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/runtime/circuit_breaker.h"
#include "lib/runtime/runtime.h"
#include "lib/runtime/telemetry.h"
#include "lib/runtime/worker.h"

namespace mlc {

struct GuardOptions {
  // Makes an instance. It is called again after a hang, and on another thread where somebody has a
  // deadline: what it refers to must be its own, as LoadOptions::observe's must be.
  std::function<std::unique_ptr<LoadedModel>()> load = {};
  // The engine that answers while the breaker is open; empty: nobody does. Loaded when first needed.
  // It runs on the caller's thread, so that no hang of another takes it away, and has to end by
  // itself, as mlc's engine does.
  std::function<std::unique_ptr<LoadedModel>()> fallback = {};
  Worker::Timeout timeout = {}, load_timeout = {};  // of one prediction; of one load, state or plan
  // Null: made anew. Instances of one model share them.
  std::shared_ptr<Telemetry> telemetry = {};
  std::shared_ptr<CircuitBreaker> breaker = {};
  std::shared_ptr<Abandoned> abandoned = Abandoned::OfProcess();
  std::function<std::chrono::steady_clock::time_point()> now =
      {};  // of the breaker; empty: the clock's
  // Called on the thread of Run when the model's own prediction is over, however it ended; may be empty.
  std::function<void(std::chrono::steady_clock::time_point begin,
                     std::chrono::steady_clock::time_point end)>
      observe = {};
};

struct Prediction {
  std::map<std::string, Tensor> outputs = {};
  PredictTimings timings = {};
  bool fallback = false;  // another engine made it
  std::string why = {};   // of a fallback: what the breaker says
  // For who finds the outputs wrong: CircuitBreaker::Revoke, Telemetry::Revoked.
  CircuitBreaker::Ticket ticket = {};
};

// Several threads may predict at once, each with a state of its own.
class GuardedModel : public LoadedModel {
 public:
  // Loads; errors are those of `load`.
  explicit GuardedModel(GuardOptions options);
  ~GuardedModel() override;  // waits for no abandoned prediction

  // As LoadedModel::Predict, with copies of the inputs where there is a timeout; besides, Error "timeout", "workers-hang",
  // "circuit-open" when the breaker is open and there is no fallback, and "bad-input" for a state
  // that another model made, or that a prediction was using which did not end well: what is in it
  // nobody knows. States survive the instance that they were made by, and fallbacks.
  Prediction Run(const std::map<std::string, Tensor>& inputs, ModelState* state = nullptr);
  Prediction Run(const std::map<std::string, Tensor>& inputs, ModelState* state,
                 Worker::Timeout timeout);  // in the place of the options'

  const Schema& schema() const override { return schema_; }
  std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                        ModelState* state, PredictTimings* timings) override;
  std::unique_ptr<ModelState> NewState() override;
  std::vector<OperationPlacement> Placements(std::string* why_not) override;

  Telemetry& telemetry() { return *options_.telemetry; }
  CircuitBreaker& breaker() { return *options_.breaker; }

 private:
  class State;
  class Lease;
  struct Instance;
  std::shared_ptr<Instance> Find(const TimeLimit& limit);
  std::shared_ptr<Instance> Take(const TimeLimit& limit);
  void Load(const std::shared_ptr<Instance>& instance, const TimeLimit& limit);
  void Return(const std::shared_ptr<Instance>& instance);
  void GiveUp(const std::shared_ptr<Instance>& instance);
  std::shared_ptr<LoadedModel> Fallback();
  Prediction FallBack(const std::map<std::string, Tensor>& inputs, State* state, std::string why);

  GuardOptions options_;
  Schema schema_;
  std::mutex mutex_;  // of all below; nothing is loaded or run under it
  std::condition_variable changed_;
  std::shared_ptr<Instance> instance_;  // none, being loaded, or there
  std::shared_ptr<LoadedModel> fallback_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace mlc
