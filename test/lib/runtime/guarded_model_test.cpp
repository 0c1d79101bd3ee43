#include "lib/runtime/guarded_model.h"

#include <cmath>
#include <deque>
#include <functional>

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/runtime/fake_runtime.h"

namespace mlc::runtime {
namespace {

using test::RefusalId;

using namespace std::chrono_literals;
using Outputs = std::map<std::string, Tensor>;

std::map<std::string, Tensor> Input(float a = 1, float b = 2) {
  return {{"x", Tensor::Vector<float>({a, b})}};
}
std::vector<double> Y(const Prediction& prediction) { return prediction.outputs.at("y").Doubles(); }

struct Fixture {
  std::shared_ptr<FakePlan> plan = std::make_shared<FakePlan>();
  std::shared_ptr<FakePlan> reference = std::make_shared<FakePlan>();
  std::shared_ptr<Latch> latch = std::make_shared<Latch>();
  std::chrono::steady_clock::time_point now{1h};
  GuardOptions options{.load = FakeLoad(plan),
                       .timeout = 1h,
                       .breaker = std::make_shared<CircuitBreaker>(BreakerOptions{}),
                       .abandoned = std::make_shared<Abandoned>(),
                       .now = [this] { return now; }};
  // Predictions with this input hang; they have a timeout of 1 ms.
  static constexpr float kHangs = 666;
  Fixture() {
    plan->given = [latch = latch](float x) {
      if (x == kHangs) latch->Wait();
    };
  }
  // The first prediction throws, and the load that follows waits for the latch.
  void FirstFailsAndSecondLoadWaits() {
    plan->loading = [latch = latch](int n) {
      if (n == 1) latch->Wait();
    };
    plan->before = [](int n) {
      if (n == 0) throw Error("runtime-failed", "the runtime threw");
    };
  }
  ~Fixture() {
    latch->Open();
    Await([&] { return options.abandoned->alive() == 0; });
    Await([&] { return plan->alive == 0; });
  }
};

TEST_CASE("guarded: prediction, telemetry and schema", "[guarded]") {
  Fixture fixture;
  GuardedModel model(fixture.options);
  CHECK(model.schema().inputs.at(0).name == "x");
  CHECK(Y(model.Run(Input())) == std::vector<double>{2, 4});
  PredictTimings timings;
  CHECK(model.Predict(Input(), nullptr, &timings).contains("y"));
  CHECK(timings.predict_ms == 1);
  CHECK(model.NewState() == nullptr);
  CHECK(model.telemetry().snapshot().succeeded == 2);
  CHECK(model.telemetry().snapshot().loads == 1);
}

TEST_CASE("guarded: predictions are correct after a hang or an exception", "[guarded]") {
  Fixture fixture;
  fixture.plan->given = [latch = fixture.latch](float x) {
    if (x == 3) throw Error("runtime-failed", "the runtime threw");
    if (x == 7) latch->Wait();
    if (x == 9) throw std::bad_alloc();
  };
  GuardedModel model(fixture.options);
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) {
    const Worker::Timeout limit = i == 7 ? 1ms : 1h;
    std::string id;
    try {
      Prediction made = model.Run(Input(i, 1), nullptr, limit);
      CHECK(Y(made) == std::vector<double>{2.0 * i, 2});
    } catch (const Error& error) {
      id = error.id();
    } catch (const std::bad_alloc&) {
      id = "memory";
    }
    ids.push_back(id);
    if (i == 8) CHECK(fixture.options.breaker->state() == CircuitBreaker::State::kClosed);
  }
  // The breaker judges from the tenth prediction on: 3 of 10 failed.
  CHECK(ids == std::vector<std::string>{"", "", "", "runtime-failed", "", "", "", "timeout", "",
                                        "memory", "circuit-open", "circuit-open"});
  const Snapshot snapshot = model.telemetry().snapshot();
  CHECK(snapshot.failures == std::array<int64_t, kFailures>{0, 0, 1, 1, 1, 0, 0});
  CHECK(snapshot.refused == 2);
  CHECK(
      snapshot.loads ==
      3);  // the first, and one each after the exception and the hang; none after the last prediction
  CHECK(model.breaker().changes().back().reason ==
        "opened: 3 of 10 predictions failed (70 % success, minimum 95 %)");
}

TEST_CASE("guarded: bad inputs do not count against the model", "[guarded]") {
  Fixture fixture;
  GuardedModel model(fixture.options);
  for (int i = 0; i < 20; ++i) CHECK(RefusalId([&] { model.Run({}); }) == "bad-input");
  CHECK(model.breaker().state() == CircuitBreaker::State::kClosed);
  CHECK(model.telemetry().snapshot().failures[static_cast<size_t>(Failure::kSchema)] == 20);
  CHECK(fixture.plan->loads == 1);
}

TEST_CASE("guarded: a thousand timeouts of hanging predictions", "[guarded]") {
  Fixture fixture;
  fixture.plan->before = [latch = fixture.latch](int) { latch->Wait(); };
  fixture.options.timeout = 1ms;
  GuardedModel model(fixture.options);
  std::map<std::string, int> ids;
  for (int i = 0; i < 1000; ++i) {
    ++ids[RefusalId([&] { model.Run(Input()); })];
    REQUIRE(fixture.options.abandoned->alive() <= 4);
    fixture.now +=
        100ms;  // time passes: probes are admitted by the breaker and rejected by the worker
  }
  // More than four if an instance was not loaded in time.
  CHECK(ids["timeout"] >= 4);
  CHECK(ids["workers-hang"] > 0);
  CHECK(ids["circuit-open"] > 900);
  CHECK(ids["timeout"] + ids["workers-hang"] + ids["circuit-open"] == 1000);
  CHECK(fixture.options.abandoned->alive() == 4);
  CHECK(model.breaker().state() == CircuitBreaker::State::kOpen);
  CHECK(fixture.plan->alive <= 5);  // one instance for each hanging prediction, and one more
  // The hanging predictions return; the breaker admits probes and closes.
  fixture.latch->Open();
  Await([&] { return fixture.options.abandoned->alive() == 0; });
  fixture.now += 1h;
  for (int i = 0; i < 20; ++i)
    CHECK(Y(model.Run(Input(), nullptr, 1h)) == std::vector<double>{2, 4});
  CHECK(model.breaker().state() == CircuitBreaker::State::kClosed);
}

TEST_CASE("guarded: concurrent predictions", "[guarded]") {
  Fixture fixture;
  fixture.plan->before = [latch = fixture.latch](int) { latch->Wait(); };
  fixture.options.timeout = 1ms;
  GuardedModel model(fixture.options);
  std::atomic<int> timeouts = 0, others = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        ErrorId([&] { model.Run(Input()); }) == "timeout" ? ++timeouts : ++others;
        if (fixture.options.abandoned->alive() > most) most = fixture.options.abandoned->alive();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(timeouts > 0);
  CHECK(timeouts + others == 1000);
  CHECK(most <= 4);
}

// Calls on separate threads; `ids` holds the error id of each call.
struct Callers {
  std::deque<std::pair<std::string, std::thread>> calls;
  void Add(std::function<void()> call) {
    auto& [id, thread] = calls.emplace_back();
    thread = std::thread([&id, call = std::move(call)] { id = ErrorId(call); });
  }
  std::vector<std::string> Join() {
    std::vector<std::string> ids;
    for (auto& [id, thread] : calls) {
      thread.join();
      ids.push_back(id);
    }
    return ids;
  }
};

TEST_CASE("guarded: a hanging load blocks neither predictions nor the fallback", "[guarded]") {
  Fixture fixture;
  fixture.options.load_timeout = 1h;
  fixture.options.fallback = FakeLoad(fixture.reference);
  auto loading = std::make_shared<Latch>();
  fixture.plan->loading = [loading](int n) {
    if (n == 1) loading->Wait();
  };
  fixture.plan->given = [latch = fixture.latch](float x) {
    if (x == Fixture::kHangs) latch->Wait();
    if (x >= 3) throw Error("runtime-failed", "the runtime threw");
  };
  GuardedModel model(fixture.options);
  Callers runs, loads;
  runs.Add([&] { model.Run(Input(Fixture::kHangs)); });
  Await([&] { return fixture.plan->predictions == 1; });
  CHECK(RefusalId([&] { model.Run(Input(3)); }) == "runtime-failed");
  std::vector<double> late;
  loads.Add([&] { late = Y(model.Run(Input())); });
  Await([&] { return fixture.plan->loads == 2; });
  CHECK(RefusalId([&] { model.Run(Input(), nullptr, 1ms); }) == "timeout");
  fixture.latch->Open();
  // The instance in use is abandoned while another one is loading.
  CHECK(runs.Join() == std::vector<std::string>{"runtime-failed"});
  while (fixture.options.breaker->state() != CircuitBreaker::State::kOpen)
    CHECK(RefusalId([&] { model.Run(Input(), nullptr, 1ms); }) == "timeout");
  CHECK(model.Run(Input()).fallback);
  CHECK(fixture.plan->loads == 2);
  loading->Open();
  CHECK(loads.Join() == std::vector<std::string>{""});
  CHECK(late == std::vector<double>{2, 4});
}

TEST_CASE("guarded: a load continues after its callers time out, on one thread", "[guarded]") {
  Fixture fixture;
  fixture.FirstFailsAndSecondLoadWaits();
  GuardedModel model(fixture.options);
  CHECK(RefusalId([&] { model.Run(Input()); }) == "runtime-failed");
  for (int i = 0; i < 5; ++i)
    CHECK(RefusalId([&] { model.Run(Input(), nullptr, 1ms); }) == "timeout");
  CHECK(fixture.options.abandoned->alive() == 1);
  fixture.latch->Open();
  CHECK(Y(model.Run(Input())) == std::vector<double>{2, 4});
  CHECK(fixture.plan->loads == 2);
}

TEST_CASE("guarded: a new load starts after the time limit of the previous one", "[guarded]") {
  Fixture fixture;
  fixture.options.load_timeout = 500ms;
  fixture.FirstFailsAndSecondLoadWaits();
  GuardedModel model(fixture.options);
  CHECK(RefusalId([&] { model.Run(Input()); }) == "runtime-failed");
  CHECK(RefusalId([&] { model.Run(Input()); }) == "timeout");
  CHECK(Y(model.Run(Input())) == std::vector<double>{2, 4});
  CHECK(fixture.plan->loads == 3);
  CHECK(fixture.options.abandoned->alive() == 1);
}

TEST_CASE("guarded: waiting for a hanging prediction takes no slot", "[guarded]") {
  Fixture fixture;
  fixture.plan->one_at_a_time = true;
  GuardedModel model(fixture.options);
  Callers callers;
  callers.Add([&] { model.Run(Input(Fixture::kHangs)); });
  Await([&] { return fixture.plan->predictions == 1; });
  for (int i = 0; i < 3; ++i)
    CHECK(RefusalId([&] { model.Run(Input(), nullptr, 1ms); }) == "timeout");
  CHECK(fixture.options.abandoned->alive() == 0);
  fixture.latch->Open();
  CHECK(callers.Join() == std::vector<std::string>{""});
  CHECK(Y(model.Run(Input())) == std::vector<double>{2, 4});
  CHECK(fixture.plan->loads == 1);
}

TEST_CASE("guarded: a caller waiting for an abandoned prediction continues with a new instance",
          "[guarded]") {
  Fixture fixture;
  fixture.plan->one_at_a_time = true;
  fixture.plan->before = [latch = fixture.latch](int n) {
    if (n == 0) latch->Wait();
  };
  GuardedModel model(fixture.options);
  std::atomic<int> right = 0;
  Callers callers;
  callers.Add([&] { model.Run(Input(), nullptr, 20ms); });
  Await([&] { return fixture.plan->predictions == 1; });
  for (int i = 0; i < 3; ++i)
    callers.Add([&] { right += Y(model.Run(Input())) == std::vector<double>{2, 4}; });
  CHECK(callers.Join() == std::vector<std::string>{"timeout", "", "", ""});
  CHECK(right == 3);
  CHECK(fixture.options.abandoned->alive() == 1);
  CHECK(fixture.plan->loads == 2);
}

TEST_CASE("guarded: a state of another model is rejected", "[guarded]") {
  struct Foreign : ModelState {
    std::map<std::string, Tensor> Read() const override { return {}; }
    void Write(const std::map<std::string, Tensor>&) override {}
  } foreign;
  Fixture fixture;
  fixture.plan->has_state = true;
  GuardedModel model(fixture.options), other(fixture.options);
  const std::unique_ptr<ModelState> others = other.NewState(), own = model.NewState();
  for (ModelState* state : {static_cast<ModelState*>(&foreign), others.get()})
    CHECK(RefusalId([&] { model.Run(Input(), state); }) == "bad-input");
  CHECK(Y(model.Run(Input(1, 1), own.get())) == std::vector<double>{1, 1});
  CHECK(model.telemetry().snapshot().loads == 1);
}

// Relies on the address sanitizer: the abandoned prediction reads its inputs and writes its outputs
// after all data of the caller is freed.
TEST_CASE("guarded: an abandoned prediction does not access freed buffers of the caller",
          "[guarded]") {
  Fixture fixture;
  fixture.plan->has_state = true;
  {
    GuardedModel model(fixture.options);
    auto buffer = std::make_unique<float[]>(2);
    buffer[0] = Fixture::kHangs;
    bool released = false;
    {
      std::unique_ptr<ModelState> state = model.NewState();
      std::map<std::string, Tensor> inputs;
      inputs["x"] =
          Tensor::Borrowed(DType::kFp32, {2}, std::as_bytes(std::span(buffer.get(), 2)), [&] {
            buffer.reset();
            released = true;
          });
      CHECK(RefusalId([&] { model.Run(inputs, state.get(), 1ms); }) == "timeout");
    }
    CHECK(released);
    CHECK(fixture.plan->late_results == 0);
  }
  fixture.latch->Open();
  Await([&] { return fixture.options.abandoned->alive() == 0; });
  CHECK(fixture.plan->late_results == 1);
}

TEST_CASE("guarded: a state survives reloading; the state of a failed prediction is rejected",
          "[guarded]") {
  Fixture fixture;
  fixture.plan->has_state = true;
  GuardedModel model(fixture.options);
  std::unique_ptr<ModelState> good = model.NewState(), bad = model.NewState();
  CHECK(Y(model.Run(Input(1, 1), good.get())) == std::vector<double>{1, 1});
  CHECK(Y(model.Run(Input(5, 5), bad.get())) == std::vector<double>{5, 5});
  CHECK(RefusalId([&] { model.Run(Input(Fixture::kHangs, 5), bad.get(), 1ms); }) == "timeout");
  CHECK(Y(model.Run(Input(1, 1), good.get())) == std::vector<double>{2, 2});
  CHECK(good->Read().at("s").Doubles() == std::vector<double>{2, 2});
  for (int i = 0; i < 2; ++i) {
    CHECK(RefusalId([&] { model.Run(Input(), bad.get()); }) == "bad-input");
    CHECK_THROWS_WITH(bad->Read(), ContainsSubstring("the state is undefined"));
    CHECK_THROWS_WITH(bad->Write({}), ContainsSubstring("the state is undefined"));
  }
  CHECK(fixture.plan->loads == 2);
  // A rejected prediction leaves its state unmodified.
  CHECK(RefusalId([&] { model.Run({}, good.get()); }) == "bad-input");
  CHECK(Y(model.Run(Input(1, 1), good.get())) == std::vector<double>{3, 3});
}

TEST_CASE("guarded: the fallback answers while the breaker is open, with marked results",
          "[guarded]") {
  Fixture fixture;
  fixture.plan->has_state = fixture.reference->has_state = true;
  bool broken = false;
  fixture.plan->before = [&](int) {
    if (broken) throw Error("runtime-failed", "the runtime threw");
  };
  fixture.options.fallback = FakeLoad(fixture.reference);
  {
    GuardedModel model(fixture.options);
    std::unique_ptr<ModelState> state = model.NewState();
    CHECK(!model.Run(Input(1, 1), state.get()).fallback);
    CHECK(fixture.reference->loads == 0);
    broken = true;
    for (int i = 0; i < 9; ++i) CHECK(RefusalId([&] { model.Run(Input()); }) == "runtime-failed");
    const Prediction made = model.Run(Input(1, 1), state.get());
    CHECK(made.fallback);
    CHECK(made.why ==
          "open: 9 of 10 predictions failed (10 % success, minimum 95 %); next attempt in 5 s");
    CHECK(Y(made) == std::vector<double>{2, 2});  // the fallback continued with the state
    CHECK(fixture.reference->predictions == 1);
    broken = false;
    fixture.now += 5s;
    const Prediction probe = model.Run(Input(1, 1), state.get());
    CHECK(!probe.fallback);
    CHECK(Y(probe) == std::vector<double>{3, 3});  // and the model does again
    const Snapshot snapshot = model.telemetry().snapshot();
    CHECK(snapshot.fallbacks == 1);
    CHECK(snapshot.failures[static_cast<size_t>(Failure::kFallback)] == 1);
    CHECK(snapshot.fallback.count == 1);
  }
  Await([&] { return fixture.reference->alive == 0; });
}

TEST_CASE("guarded: reloading that fails or hangs", "[guarded]") {
  Fixture fixture;
  fixture.options.load_timeout = 1h;
  fixture.plan->before = [](int n) {
    if (n == 0) throw Error("runtime-failed", "the runtime threw");
  };
  fixture.plan->loading = [](int n) {
    if (n == 1) throw Error("file-io", "the model is gone");
  };
  GuardedModel model(fixture.options);
  CHECK(RefusalId([&] { model.Run(Input()); }) == "runtime-failed");
  CHECK(RefusalId([&] { model.Run(Input()); }) == "file-io");
  CHECK(Y(model.Run(Input())) == std::vector<double>{2, 4});
  CHECK(model.telemetry().snapshot().failures ==
        std::array<int64_t, kFailures>{1, 0, 1, 0, 0, 0, 0});
  Fixture hanging;
  hanging.options.load_timeout = 1ms;
  hanging.plan->loading = [latch = hanging.latch](int) { latch->Wait(); };
  CHECK(RefusalId([&] { GuardedModel never(hanging.options); }) == "timeout");
  CHECK(hanging.options.abandoned->alive() == 1);
}

}  // namespace
}  // namespace mlc::runtime
