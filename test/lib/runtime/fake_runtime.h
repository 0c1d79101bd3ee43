// test/lib/runtime/fake_runtime.h - a runtime with configurable faults.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/runtime/runtime.h"
#include "lib/support/error.h"

namespace mlc::runtime {

// Blocks hanging calls until it is opened.
class Latch {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// Configuration and statistics of all models of a runtime; shared, because abandoned threads use it
// too.
struct FakePlan {
  // Called by prediction `n`, counted over all instances from 0, before it computes; may return,
  // throw or block.
  std::function<void(int n)> before = [](int) {};
  // Called by load `n` before it returns a model.
  std::function<void(int n)> loading = [](int) {};
  // The same, selected by the first element of x, because abandoned predictions may be counted out
  // of order.
  std::function<void(float x)> given = [](float) {};
  // The factor that prediction `n` multiplies by.
  std::function<float(int n)> factor = [](int) { return 2.f; };
  bool has_state = false;
  bool one_at_a_time = false;     // predictions of an instance are serialized
  double ms = 1;                  // reported duration of predictions
  std::map<Units, double> units;  // overrides `ms` for these units
  std::vector<OperationPlacement> placements;
  std::atomic<int> predictions{0}, loads{0}, alive{0}, late_results{0};
};

// y = 2 x, of [2] fp32; with a state s: s += x, y = s.
class FakeModel : public LoadedModel {
 public:
  explicit FakeModel(std::shared_ptr<FakePlan> plan, Units units = Units::kAll)
      : plan_(std::move(plan)),
        ms_(plan_->units.contains(units) ? plan_->units[units] : plan_->ms) {
    plan_->loading(plan_->loads++);
    schema_.inputs = {{"x", Feature::Kind::kTensor, DType::kFp32, {2}}};
    schema_.outputs = {{"y", Feature::Kind::kTensor, DType::kFp32, {2}}};
    if (plan_->has_state) schema_.states = {{"s", Feature::Kind::kState, DType::kFp32, {2}}};
    ++plan_->alive;
  }
  ~FakeModel() override { --plan_->alive; }
  const Schema& schema() const override { return schema_; }
  bool one_at_a_time() const override { return plan_->one_at_a_time; }

  std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                        ModelState* given, PredictTimings* timings) override {
    std::unique_lock turn(predicting_, std::defer_lock);
    if (plan_->one_at_a_time) turn.lock();
    if (!inputs.contains("x")) throw Error("bad-input", "there is no input \"x\"");
    auto* state = static_cast<State*>(given);
    // Leaves the state half written if the prediction aborts here.
    if (state) state->sum[0] += inputs.at("x").data<float>()[0];
    const int n = plan_->predictions++;
    plan_->before(n);
    plan_->given(inputs.at("x").data<float>()[0]);
    const float factor = plan_->factor(n);
    // Reads the inputs and writes the output as late as possible.
    const auto x = inputs.at("x").data<float>();
    if (state) state->sum[1] += x[1];
    std::vector<float> y = state ? state->sum : std::vector<float>{factor * x[0], factor * x[1]};
    if (timings) *timings = {0, ms_, 0};
    ++plan_->late_results;
    return {{"y", Tensor::Of<float>({2}, y)}};
  }

  std::unique_ptr<ModelState> NewState() override {
    return plan_->has_state ? std::make_unique<State>() : nullptr;
  }
  std::vector<OperationPlacement> Placements(std::string*) override { return plan_->placements; }

 private:
  struct State : ModelState {
    std::vector<float> sum{0, 0};
    std::map<std::string, Tensor> Read() const override {
      return {{"s", Tensor::Of<float>({2}, sum)}};
    }
    void Write(const std::map<std::string, Tensor>& values) override {
      sum.clear();
      for (float value : values.at("s").data<float>()) sum.push_back(value);
    }
  };
  std::shared_ptr<FakePlan> plan_;
  double ms_;
  Schema schema_;
  std::mutex predicting_;
};

class FakeRuntime : public Runtime {
 public:
  explicit FakeRuntime(std::shared_ptr<FakePlan> plan) : plan_(std::move(plan)) {}
  Capabilities capabilities() const override { return {.runtime = "a fake"}; }
  bool loads_packages() const override { return true; }
  void Compile(const std::filesystem::path&, const std::filesystem::path& into) override {
    bundle = into;
    compiling();
  }
  std::unique_ptr<LoadedModel> Load(const std::filesystem::path&,
                                    const LoadOptions& options) override {
    return std::make_unique<FakeModel>(plan_, options.units);
  }
  std::function<void()> compiling = [] {};
  std::filesystem::path bundle;  // last compiled bundle

 private:
  std::shared_ptr<FakePlan> plan_;
};

inline std::function<std::unique_ptr<LoadedModel>()> FakeLoad(std::shared_ptr<FakePlan> plan) {
  return [plan] { return std::make_unique<FakeModel>(plan); };
}

// Returns the id of the error thrown by work(), "" for none. For threads of a test, where Catch
// must not be used.
template <class F>
std::string ErrorId(F&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.id();
  }
  return "";
}

// Waits for another thread to reach `condition`, without asserting on speed.
template <class Condition>
void Await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace mlc::runtime
