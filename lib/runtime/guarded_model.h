// lib/runtime/guarded_model.h - makes a model that may throw, hang or write late safe to call.
//
// Predictions run on a worker with a deadline (worker.h), are counted (telemetry.h) and are
// admitted by a circuit breaker. An instance that hung or threw is discarded together with its
// worker, and the next prediction loads a new one. While the breaker is open, the fallback answers
// and its results are marked.
//
// The deadline of a prediction includes loading the model and waiting for other predictions. If it
// expires during a load, the load continues and later callers use its result. A model that takes
// longer to load than callers wait therefore becomes available eventually, and a hanging load uses
// one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/runtime/circuit_breaker.h"
#include "lib/runtime/runtime.h"
#include "lib/runtime/telemetry.h"
#include "lib/runtime/worker.h"

namespace mlc::runtime {

struct GuardOptions {
  // Creates an instance. It is called again after a hang, and on another thread if there is a
  // deadline. It must own everything it refers to; the same applies to LoadOptions::observe.
  std::function<std::unique_ptr<LoadedModel>()> load = {};
  // Creates the engine that answers while the breaker is open; optional. It is loaded on first use
  // and runs on the caller's thread, so that hanging threads cannot exhaust it. Its predictions
  // must terminate without a deadline, as those of the reference engine do.
  std::function<std::unique_ptr<LoadedModel>()> fallback = {};
  Worker::Timeout timeout = {}, load_timeout = {};  // for a prediction; for a load, state or plan
  // null creates one; instances of a model share it
  std::shared_ptr<Telemetry> telemetry = {};
  std::shared_ptr<CircuitBreaker> breaker = {};
  std::shared_ptr<Abandoned> abandoned = Abandoned::OfProcess();
  std::function<std::chrono::steady_clock::time_point()> now =
      {};  // clock of the breaker; defaults to the steady clock
  // Called on the thread of Run after each prediction of the model itself, successful or not;
  // optional.
  std::function<void(std::chrono::steady_clock::time_point begin,
                     std::chrono::steady_clock::time_point end)>
      observe = {};
};

struct Prediction {
  std::map<std::string, Tensor> outputs = {};
  PredictTimings timings = {};
  bool fallback = false;  // the fallback computed the outputs
  std::string why = {};   // reason given by the breaker, for a fallback
  // For callers that find the outputs wrong: CircuitBreaker::Revoke, Telemetry::Revoked.
  CircuitBreaker::Ticket ticket = {};
};

// Several threads may predict at the same time, each with its own state.
class GuardedModel : public LoadedModel {
 public:
  // Loads the model and throws the errors of `load`.
  explicit GuardedModel(GuardOptions options);
  ~GuardedModel() override;  // does not wait for abandoned predictions

  // Like LoadedModel::Predict, with copies of the inputs if there is a timeout. Further errors:
  // "timeout"; "workers-hang"; "circuit-open" if the breaker is open and there is no fallback;
  // "bad-input" for a state created by another model, or used by a prediction that failed, because
  // its contents are then undefined. States stay valid when instances are replaced, and with
  // fallbacks.
  Prediction Run(const std::map<std::string, Tensor>& inputs, ModelState* state = nullptr);
  Prediction Run(const std::map<std::string, Tensor>& inputs, ModelState* state,
                 Worker::Timeout timeout);  // overrides the one in the options

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
  std::mutex mutex_;  // guards the members below; not held while loading or predicting
  std::condition_variable changed_;
  std::shared_ptr<Instance> instance_;  // null, being loaded, or loaded
  std::shared_ptr<LoadedModel> fallback_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace mlc::runtime
