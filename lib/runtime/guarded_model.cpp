#include "lib/runtime/guarded_model.h"

#include <atomic>
#include <future>
#include <utility>

#include "lib/support/error.h"
#include "lib/support/milliseconds.h"
#include "lib/support/work_scope.h"

namespace mlc::runtime {
namespace {

using Clock = std::chrono::steady_clock;
// Copies the inputs, because the owner of borrowed memory (Tensor::Borrowed) may reclaim it.
std::map<std::string, Tensor> Copies(const std::map<std::string, Tensor>& inputs) {
  std::map<std::string, Tensor> copies;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor || tensor.dtype() == DType::kString) {
      copies[name] = tensor;
      continue;
    }
    std::byte* out = nullptr;
    Tensor copy = Tensor::Allocate(tensor.dtype(), tensor.dims(), &out);
    tensor.Read(0, tensor.size(), out);
    copies[name] = std::move(copy);
  }
  return copies;
}

// Classifies the exception of a prediction or of the load that it needed.
Failure KindOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return FailureOf(error.id());
  } catch (const std::bad_alloc&) {
    return Failure::kMemory;
  } catch (...) {
    return Failure::kException;
  }
}

}  // namespace

// A state together with the model that created it, which it may refer to.
class GuardedModel::State : public ModelState {
 public:
  State(const GuardedModel* guard, std::shared_ptr<LoadedModel> model)
      : guard(guard), owner(std::move(model)), inner(owner->NewState()) {}
  std::map<std::string, Tensor> Read() const override {
    RequireSound();
    return inner->Read();
  }
  void Write(const std::map<std::string, Tensor>& values) override {
    RequireSound();
    inner->Write(values);
  }
  // Returns `given`, which may be null, as a State. Error "bad-input".
  static State* Of(const GuardedModel& guard, ModelState* given) {
    if (!given) return nullptr;
    auto* state = dynamic_cast<State*>(given);
    if (!state || state->guard != &guard)
      throw Error("bad-input", "the state belongs to another model")
          .Help("create the state with NewState of this model");
    state->RequireSound();
    return state;
  }
  void RequireSound() const {
    if (sound) return;
    throw Error("bad-input", "the state is undefined because a prediction that used it failed")
        .Help("start over with a new state");
  }
  // Returns the state for `model` to use: this one, or a copy created by `model`.
  static std::shared_ptr<ModelState> For(LoadedModel& model,
                                         const std::shared_ptr<LoadedModel>& owner,
                                         const std::shared_ptr<ModelState>& inner) {
    if (!inner || owner.get() == &model) return inner;
    std::shared_ptr<ModelState> moved = model.NewState();
    if (!moved) throw Error("schema-mismatch", "the reloaded model has no states");
    moved->Write(inner->Read());
    return moved;
  }

  const GuardedModel* guard;
  std::shared_ptr<LoadedModel> owner;
  std::shared_ptr<ModelState> inner;
  bool sound = true;
};

// Exclusive use of a worker.
class GuardedModel::Lease {
 public:
  explicit Lease(GuardedModel& model) : model_(model) {
    std::lock_guard lock(model_.mutex_);
    if (model_.idle_.empty()) {
      worker_ = std::make_unique<Worker>(model_.options_.abandoned);
    } else {
      worker_ = std::move(model_.idle_.back());
      model_.idle_.pop_back();
    }
  }
  ~Lease() {
    std::lock_guard lock(model_.mutex_);
    model_.idle_.push_back(std::move(worker_));
  }
  Worker* operator->() { return worker_.get(); }

 private:
  GuardedModel& model_;
  std::unique_ptr<Worker> worker_;
};

// An instance of the model, from the start of its load. It may outlive the caller that started the
// load.
struct GuardedModel::Instance {
  explicit Instance(Worker::Timeout load_timeout) : limit(load_timeout) {}
  const std::shared_ptr<LoadedModel>& model() const { return loaded.get(); }

  const TimeLimit limit;  // time limit of the load
  std::promise<std::shared_ptr<LoadedModel>>
      promise;  // null means that the load was not started and a waiting caller may start it
  const std::shared_future<std::shared_ptr<LoadedModel>> loaded = promise.get_future().share();
  bool taken = false;  // in use by a prediction, if predictions are serialized
};

GuardedModel::GuardedModel(GuardOptions options) : options_(std::move(options)) {
  if (!options_.telemetry) options_.telemetry = std::make_shared<Telemetry>();
  if (!options_.breaker) options_.breaker = std::make_shared<CircuitBreaker>(BreakerOptions{});
  if (!options_.now) options_.now = Clock::now;
  schema_ = Find(TimeLimit(options_.load_timeout))->model()->schema();
}

GuardedModel::~GuardedModel() = default;

// Returns the current instance. The first caller loads it and the others wait. Throws the errors of
// the load, and NotBegun "timeout" if a time limit expires.
std::shared_ptr<GuardedModel::Instance> GuardedModel::Find(const TimeLimit& limit) {
  while (true) {
    std::shared_ptr<Instance> instance;
    bool mine;
    {
      std::lock_guard lock(mutex_);
      mine = !instance_;
      if (mine) instance_ = std::make_shared<Instance>(options_.load_timeout);
      instance = instance_;
    }
    try {
      if (mine) Load(instance, limit);
      const Clock::time_point end = std::min(limit.end, instance->limit.end);
      if (instance->loaded.wait_until(end) != std::future_status::ready)
        throw NotBegun(Error("timeout", "the deadline expired before the model was loaded"));
      if (instance->model()) return instance;
    } catch (...) {
      const bool failed =
          instance->loaded.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      if (failed || instance->limit.over()) GiveUp(instance);
      throw;
    }
  }
}

void GuardedModel::Load(const std::shared_ptr<Instance>& instance, const TimeLimit& limit) {
  const bool own = limit.timeout && limit.end < instance->limit.end;
  try {
    Lease(*this)->RunWithin(own ? limit : instance->limit,
                            [instance, load = options_.load, telemetry = options_.telemetry] {
                              try {
                                const Clock::time_point begin = Clock::now();
                                std::shared_ptr<LoadedModel> model = load();
                                telemetry->Loaded(MillisecondsSince(begin));
                                instance->promise.set_value(std::move(model));
                              } catch (...) {
                                instance->promise.set_exception(std::current_exception());
                              }
                            });
  } catch (const NotBegun&) {
    GiveUp(instance);
    instance->promise.set_value(nullptr);
    throw;
  }
}

// Returns an instance that this caller may use now.
std::shared_ptr<GuardedModel::Instance> GuardedModel::Take(const TimeLimit& limit) {
  while (true) {
    std::shared_ptr<Instance> instance = Find(limit);
    if (!instance->model()->one_at_a_time()) return instance;
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, limit.end,
                             [&] { return !instance->taken || instance_ != instance; }))
      throw NotBegun(Error("timeout", "the deadline expired while waiting for another prediction"));
    if (instance_ != instance) continue;  // the previous instance hung
    instance->taken = true;
    return instance;
  }
}

void GuardedModel::Return(const std::shared_ptr<Instance>& instance) {
  std::lock_guard lock(mutex_);
  instance->taken = false;
  changed_.notify_all();
}

void GuardedModel::GiveUp(const std::shared_ptr<Instance>& instance) {
  std::lock_guard lock(mutex_);
  if (instance_ == instance) instance_ = nullptr;
  changed_.notify_all();
}

// Two threads may load the fallback at the same time; the first result is kept.
std::shared_ptr<LoadedModel> GuardedModel::Fallback() {
  {
    std::lock_guard lock(mutex_);
    if (fallback_) return fallback_;
  }
  std::shared_ptr<LoadedModel> loaded = options_.fallback();
  std::lock_guard lock(mutex_);
  if (!fallback_) fallback_ = std::move(loaded);
  return fallback_;
}

Prediction GuardedModel::FallBack(const std::map<std::string, Tensor>& inputs, State* state,
                                  std::string why) {
  if (!options_.fallback) {
    options_.telemetry->Refused();
    throw Error("circuit-open", "the circuit breaker is {}", why)
        .Help("MLC_CIRCUIT_BREAKER=closed admits every prediction");
  }
  Prediction prediction{.fallback = true, .why = std::move(why)};
  try {
    const std::shared_ptr<LoadedModel> model = Fallback();
    std::shared_ptr<ModelState> inner;
    if (state) {
      inner = State::For(*model, state->owner, state->inner);
      state->sound = false;  // set again when the prediction succeeds
    }
    const Clock::time_point begin = Clock::now();
    prediction.outputs = model->Predict(inputs, inner.get(), &prediction.timings);
    options_.telemetry->FellBack(MillisecondsSince(begin));
    if (state) {
      state->inner = std::move(inner);
      state->owner = model;
      state->sound = true;
    }
  } catch (...) {
    const Failure failure = KindOf(std::current_exception());
    if (state && failure == Failure::kSchema) state->sound = true;
    options_.telemetry->Failed(failure);
    throw;
  }
  return prediction;
}

Prediction GuardedModel::Run(const std::map<std::string, Tensor>& inputs, ModelState* state) {
  return Run(inputs, state, options_.timeout);
}

Prediction GuardedModel::Run(const std::map<std::string, Tensor>& inputs, ModelState* given,
                             Worker::Timeout timeout) {
  const TimeLimit limit(timeout);
  State* state = State::Of(*this, given);
  const CircuitBreaker::Ticket ticket = options_.breaker->Admit(options_.now());
  if (!ticket.admitted) return FallBack(inputs, state, ticket.reason);

  CircuitBreaker::Outcome outcome{.kind = CircuitBreaker::Outcome::kFailed};
  const Clock::time_point admitted = Clock::now();
  const auto record = [&] {
    if (options_.observe) options_.observe(admitted, Clock::now());
    outcome.resident_bytes = options_.telemetry->resident_bytes();
    options_.breaker->Record(ticket, outcome, options_.now());
  };
  std::shared_ptr<Instance> instance;
  try {
    instance = Take(limit);
  } catch (...) {
    Failure failure = KindOf(std::current_exception());
    if (failure != Failure::kTimeout && failure != Failure::kMemory) failure = Failure::kCompile;
    options_.telemetry->Failed(failure);
    record();
    throw;
  }

  // Ends a prediction of the reference engine after its time limit, so that it does not compute for
  // nobody. Core ML cannot be interrupted.
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  // Everything that the thread of the worker accesses.
  struct Made {
    Prediction prediction;
    std::shared_ptr<ModelState> inner;
  };
  try {
    const Clock::time_point begin = Clock::now();
    auto owned = timeout ? Copies(inputs) : inputs;
    const double copied_ms = timeout ? MillisecondsSince(begin) : 0;
    auto predict = [model = instance->model(), inputs = std::move(owned),
                    owner = state ? state->owner : nullptr, inner = state ? state->inner : nullptr,
                    stop, limited = timeout.has_value()] {
      WorkLimits limits = WorkScope::Current();
      if (limited) limits.cancelled = stop.get();
      const WorkScope scope(limits);
      Made made;
      made.inner = State::For(*model, owner, inner);
      made.prediction.outputs = model->Predict(inputs, made.inner.get(), &made.prediction.timings);
      return made;
    };
    Made made = Lease(*this)->RunWithin(limit, std::move(predict));
    Return(instance);
    if (state) {
      state->inner = std::move(made.inner);
      state->owner = instance->model();
    }
    made.prediction.timings.marshal_in_ms += copied_ms;
    options_.telemetry->Succeeded(made.prediction.timings);
    outcome.kind = CircuitBreaker::Outcome::kSucceeded;
    outcome.ms = made.prediction.timings.marshal_in_ms + made.prediction.timings.predict_ms +
                 made.prediction.timings.marshal_out_ms;
    record();
    made.prediction.ticket = ticket;
    return std::move(made.prediction);
  } catch (const Error& error) {
    if (error.id() == "timeout") *stop = true;
    const bool begun = !dynamic_cast<const NotBegun*>(&error);
    const bool callers = error.id() == "bad-input";
    if (callers) outcome.kind = CircuitBreaker::Outcome::kNeither;
    if (!begun || callers) {
      Return(instance);
    } else {
      GiveUp(instance);
      if (state) state->sound = false;
    }
    options_.telemetry->Failed(FailureOf(error.id()));
    record();
    throw;
  } catch (...) {
    GiveUp(instance);
    if (state) state->sound = false;
    options_.telemetry->Failed(KindOf(std::current_exception()));
    record();
    throw;
  }
}

std::map<std::string, Tensor> GuardedModel::Predict(const std::map<std::string, Tensor>& inputs,
                                                    ModelState* state, PredictTimings* timings) {
  Prediction prediction = Run(inputs, state);
  if (timings) *timings = prediction.timings;
  return std::move(prediction.outputs);
}

std::unique_ptr<ModelState> GuardedModel::NewState() {
  if (schema_.states.empty()) return nullptr;
  const TimeLimit limit(options_.load_timeout);
  return Lease(*this)->RunWithin(limit, [guard = this, model = Find(limit)->model()] {
    return std::make_unique<State>(guard, model);
  });
}

std::vector<OperationPlacement> GuardedModel::Placements(std::string* why_not) {
  struct Found {
    std::vector<OperationPlacement> placements;
    std::string why_not;
  };
  const TimeLimit limit(options_.load_timeout);
  Found found = Lease(*this)->RunWithin(limit, [model = Find(limit)->model()] {
    Found made;
    made.placements = model->Placements(&made.why_not);
    return made;
  });
  if (why_not) *why_not = std::move(found.why_not);
  return std::move(found.placements);
}

}  // namespace mlc::runtime
