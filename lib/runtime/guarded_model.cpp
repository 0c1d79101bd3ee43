#include "lib/runtime/guarded_model.h"

#include <utility>

#include "lib/support/error.h"
#include "lib/support/milliseconds.h"

namespace mlc {
namespace {

using Clock = std::chrono::steady_clock;
// A tensor may lie in memory that its maker takes back (Tensor::Borrowed).
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

// Of an error that a prediction, or the load that it needed, ended with.
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

// A state with the model that made it, which it may refer to.
class GuardedModel::State : public ModelState {
 public:
  State(std::shared_ptr<LoadedModel> model) : owner(std::move(model)), inner(owner->NewState()) {}
  std::map<std::string, Tensor> Read() const override {
    RequireSound();
    return inner->Read();
  }
  void Write(const std::map<std::string, Tensor>& values) override {
    RequireSound();
    inner->Write(values);
  }
  void RequireSound() const {
    if (sound) return;
    throw Error("bad-input",
                "a prediction with this state did not end well: nobody knows what is in it")
        .Help("begin anew with a new state");
  }
  // What `model` goes on with: this, or a copy of its own making.
  static std::shared_ptr<ModelState> For(LoadedModel& model,
                                         const std::shared_ptr<LoadedModel>& owner,
                                         const std::shared_ptr<ModelState>& inner) {
    if (!inner || owner.get() == &model) return inner;
    std::shared_ptr<ModelState> moved = model.NewState();
    if (!moved) throw Error("schema-mismatch", "the model that was loaded anew has no states");
    moved->Write(inner->Read());
    return moved;
  }

  std::shared_ptr<LoadedModel> owner;
  std::shared_ptr<ModelState> inner;
  bool sound = true;
};

// A worker that nobody else has.
class GuardedModel::Lease {
 public:
  explicit Lease(GuardedModel& model) : model_(model) {
    std::lock_guard lock(model_.idle_mutex_);
    if (model_.idle_.empty()) {
      worker_ = std::make_unique<Worker>(model_.options_.abandoned);
    } else {
      worker_ = std::move(model_.idle_.back());
      model_.idle_.pop_back();
    }
  }
  ~Lease() {
    std::lock_guard lock(model_.idle_mutex_);
    model_.idle_.push_back(std::move(worker_));
  }
  Worker* operator->() { return worker_.get(); }

 private:
  GuardedModel& model_;
  std::unique_ptr<Worker> worker_;
};

GuardedModel::GuardedModel(GuardOptions options) : options_(std::move(options)) {
  if (!options_.telemetry) options_.telemetry = std::make_shared<Telemetry>();
  if (!options_.breaker) options_.breaker = std::make_shared<CircuitBreaker>(BreakerOptions{});
  if (!options_.now) options_.now = Clock::now;
  schema_ = Instance()->schema();
}

GuardedModel::~GuardedModel() = default;

std::shared_ptr<LoadedModel> GuardedModel::Instance() {
  std::lock_guard lock(loading_);
  if (instance_) return instance_;
  const Clock::time_point begin = Clock::now();
  instance_ =
      Lease(*this)->Run([load = options_.load] { return std::shared_ptr<LoadedModel>(load()); },
                        options_.load_timeout);
  options_.telemetry->Loaded(MillisecondsSince(begin));
  return instance_;
}

std::shared_ptr<LoadedModel> GuardedModel::Fallback() {
  std::lock_guard lock(loading_);
  if (!fallback_) fallback_ = options_.fallback();
  return fallback_;
}

void GuardedModel::GiveUp(const std::shared_ptr<LoadedModel>& instance) {
  std::lock_guard lock(loading_);
  if (instance_ == instance) instance_ = nullptr;
}

Prediction GuardedModel::FallBack(const std::map<std::string, Tensor>& inputs, State* state,
                                  std::string why) {
  if (!options_.fallback) {
    options_.telemetry->Refused();
    throw Error("circuit-open", fmt::format("the circuit breaker is {}", why))
        .Help("MLC_CIRCUIT_BREAKER=closed lets every prediction through");
  }
  Prediction prediction{.fallback = true, .why = std::move(why)};
  try {
    const std::shared_ptr<LoadedModel> model = Fallback();
    std::shared_ptr<ModelState> inner;
    if (state) {
      inner = State::For(*model, state->owner, state->inner);
      state->sound = false;  // until it ended well
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
  auto* state = static_cast<State*>(given);
  if (state) state->RequireSound();
  const CircuitBreaker::Ticket ticket = options_.breaker->Admit(options_.now());
  if (!ticket.admitted) return FallBack(inputs, state, ticket.reason);

  CircuitBreaker::Outcome outcome{.kind = CircuitBreaker::Outcome::kFailed};
  const Clock::time_point admitted = Clock::now();
  const auto record = [&] {
    if (options_.observe) options_.observe(admitted, Clock::now());
    outcome.resident_bytes = options_.telemetry->resident_bytes();
    options_.breaker->Record(ticket, outcome, options_.now());
  };
  std::shared_ptr<LoadedModel> instance;
  try {
    instance = Instance();
  } catch (...) {
    Failure failure = KindOf(std::current_exception());
    if (failure != Failure::kTimeout && failure != Failure::kMemory) failure = Failure::kCompile;
    options_.telemetry->Failed(failure);
    record();
    throw;
  }

  // All that the worker's thread touches.
  struct Made {
    Prediction prediction;
    std::shared_ptr<ModelState> inner;
  };
  try {
    const Clock::time_point begin = Clock::now();
    auto owned = timeout ? Copies(inputs) : inputs;
    const double copied_ms = timeout ? MillisecondsSince(begin) : 0;
    auto predict = [instance, inputs = std::move(owned), owner = state ? state->owner : nullptr,
                    inner = state ? state->inner : nullptr] {
      Made made;
      made.inner = State::For(*instance, owner, inner);
      made.prediction.outputs =
          instance->Predict(inputs, made.inner.get(), &made.prediction.timings);
      return made;
    };
    Made made = Lease(*this)->Run(std::move(predict), timeout);
    if (state) {
      state->inner = std::move(made.inner);
      state->owner = instance;
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
    const bool not_begun = error.id() == "workers-hang";
    const bool callers = error.id() == "bad-input";
    if (callers) outcome.kind = CircuitBreaker::Outcome::kNeither;
    if (!not_begun && !callers) {
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
  return std::make_unique<State>(Instance());
}

std::vector<OperationPlacement> GuardedModel::Placements(std::string* why_not) {
  struct Found {
    std::vector<OperationPlacement> placements;
    std::string why_not;
  };
  Found found = Lease(*this)->Run(
      [instance = Instance()] {
        Found made;
        made.placements = instance->Placements(&made.why_not);
        return made;
      },
      options_.load_timeout);
  if (why_not) *why_not = std::move(found.why_not);
  return std::move(found.placements);
}

}  // namespace mlc
