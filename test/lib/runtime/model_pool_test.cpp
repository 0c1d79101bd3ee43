#include "lib/runtime/model_pool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/catch.h"
#include "test/lib/runtime/fake_runtime.h"

namespace mlc::runtime {
namespace {

using namespace std::chrono_literals;

struct Models {
  std::shared_ptr<FakePlan> plan = std::make_shared<FakePlan>();
  std::shared_ptr<Abandoned> abandoned = std::make_shared<Abandoned>();
  std::shared_ptr<Telemetry> telemetry = std::make_shared<Telemetry>();
  std::shared_ptr<CircuitBreaker> breaker = std::make_shared<CircuitBreaker>(BreakerOptions{});
  std::vector<std::unique_ptr<GuardedModel>> Make(int count) {
    std::vector<std::unique_ptr<GuardedModel>> models;
    for (int i = 0; i < count; ++i)
      models.push_back(std::make_unique<GuardedModel>(GuardOptions{.load = FakeLoad(plan),
                                                                   .timeout = 1h,
                                                                   .telemetry = telemetry,
                                                                   .breaker = breaker,
                                                                   .abandoned = abandoned}));
    return models;
  }
};
PoolTask Task(float a, Worker::Timeout timeout = {}) {
  return {{{"x", Tensor::Vector<float>({a, 1})}}, timeout};
}

TEST_CASE("pool: each task gets its own result", "[pool]") {
  Models models;
  Pool pool(models.Make(3), 4);
  std::vector<std::future<Prediction>> results;
  for (int i = 0; i < 100; ++i) results.push_back(pool.Submit(Task(i), Pool::WhenFull::kBlock));
  for (int i = 0; i < 100; ++i) CHECK(results[i].get().outputs.at("y").Double(0) == 2 * i);
  Await([&] { return pool.statistics().finished == 100; });
  const PoolStatistics statistics = pool.statistics();
  CHECK(statistics.submitted == 100);
  CHECK(statistics.rejected == 0);
  CHECK(statistics.queue_high_water <= 4);
  CHECK(statistics.waited.count == 100);
  CHECK(models.plan->loads == 3);
  CHECK(models.telemetry->snapshot().succeeded == 100);
}

TEST_CASE("pool: a full queue rejects or waits, as requested", "[pool]") {
  Models models;
  auto latch = std::make_shared<Latch>();
  models.plan->before = [latch](int) { latch->Wait(); };
  Pool pool(models.Make(1), 2);
  std::vector<std::future<Prediction>> results;
  results.push_back(pool.Submit(Task(0), Pool::WhenFull::kRefuse));
  Await([&] { return models.plan->predictions == 1; });  // the prediction has started
  for (int i = 1; i <= 2; ++i) results.push_back(pool.Submit(Task(i), Pool::WhenFull::kRefuse));
  CHECK_THROWS_WITH(pool.Submit(Task(3), Pool::WhenFull::kRefuse),
                    ContainsSubstring("the queue is full: 2 predictions are waiting"));
  CHECK(pool.statistics().rejected == 1);
  CHECK(pool.statistics().queue_high_water == 2);
  std::atomic<bool> in = false;
  std::thread waits([&] {
    auto result = pool.Submit(Task(3), Pool::WhenFull::kBlock);
    in = true;
    CHECK(result.get().outputs.at("y").Double(0) == 6);
  });
  Await([&] { return pool.statistics().blocked == 1; });
  CHECK(!in);
  latch->Open();
  waits.join();
  for (int i = 0; i <= 2; ++i) CHECK(results[i].get().outputs.at("y").Double(0) == 2 * i);
}

TEST_CASE("pool: a hanging task affects neither its instance nor other tasks", "[pool]") {
  Models models;
  auto latch = std::make_shared<Latch>();
  models.plan->given = [latch](float x) {
    if (x == 666) latch->Wait();
  };
  {
    Pool pool(models.Make(2), 8);
    auto hangs = pool.Submit(Task(666, 1ms), Pool::WhenFull::kBlock);
    CHECK_THROWS_AS(hangs.get(), Error);
    std::vector<std::future<Prediction>> results;
    for (int i = 0; i < 8; ++i) results.push_back(pool.Submit(Task(i), Pool::WhenFull::kBlock));
    for (int i = 0; i < 8; ++i) CHECK(results[i].get().outputs.at("y").Double(0) == 2 * i);
  }
  CHECK(models.abandoned->alive() == 1);
  latch->Open();
  Await([&] { return models.abandoned->alive() == 0; });
}

TEST_CASE("pool: all callbacks run before the destructor returns", "[pool]") {
  Models models;
  models.plan->before = [](int n) {
    if (n == 5) throw Error("runtime-failed", "the runtime threw");
  };
  std::atomic<int> made = 0, failed = 0;
  {
    Pool pool(models.Make(2), 50);
    for (int i = 0; i < 9; ++i)
      pool.Submit(Task(i), Pool::WhenFull::kRefuse,
                  [&](Prediction prediction, std::exception_ptr failure) {
                    failure ? ++failed : made += prediction.outputs.contains("y");
                  });
  }
  CHECK(made == 8);
  CHECK(failed == 1);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("pool: an error if the threads cannot be created", "[pool]") {
  const pid_t child = fork();
  if (child == 0) {
    Models models;
    constexpr int kCount = 200;
    std::vector<std::unique_ptr<GuardedModel>> instances = models.Make(kCount);
    const rlimit limit{size_t{1} << 30, size_t{1} << 30};  // stacks take 8 MB each
    setrlimit(RLIMIT_AS, &limit);
    std::string id;
    try {
      Pool pool(std::move(instances), 4);
    } catch (const Error& error) {
      id = error.id();
    }
    _exit(id == "resource-limit" ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
#endif

}  // namespace
}  // namespace mlc::runtime
