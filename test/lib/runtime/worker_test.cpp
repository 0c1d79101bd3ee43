#include "lib/runtime/worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/runtime/fake_runtime.h"

namespace mlc::runtime {
namespace {

using test::RefusalId;

using namespace std::chrono_literals;

TEST_CASE("worker: results and exceptions of any type are passed on", "[worker]") {
  for (const Worker::Timeout timeout : {Worker::Timeout(), Worker::Timeout(1h)}) {
    Worker worker(std::make_shared<Abandoned>());
    CHECK(worker.Run([] { return std::string("made"); }, timeout) == "made");
    CHECK(worker.Run([] { return std::make_unique<int>(7); }, timeout) != nullptr);
    worker.Run([] {}, timeout);
    CHECK_THROWS_WITH(worker.Run([]() -> int { throw std::out_of_range("theirs"); }, timeout),
                      "theirs");
    CHECK_THROWS_AS(worker.Run([] { throw 5; }, timeout), int);
    CHECK(worker.Run([] { return 2; }, timeout) == 2);
  }
}

TEST_CASE("worker: a time limit beyond the range of the clock", "[worker]") {
  Worker worker(std::make_shared<Abandoned>());
  CHECK(worker.Run([] { return 1; }, std::chrono::nanoseconds::max()) == 1);
}

TEST_CASE("worker: the data of a task is released before its result is available", "[worker]") {
  Worker worker(std::make_shared<Abandoned>());
  for (int i = 0; i < 100; ++i) {
    auto held = std::make_shared<int>(i);
    CHECK(worker.Run([held] { return *held; }, 1h) == i);
    CHECK(held.use_count() == 1);
  }
}

TEST_CASE("worker: a hanging task is abandoned and its late result dropped", "[worker]") {
  auto places = std::make_shared<Abandoned>();
  auto latch = std::make_shared<Latch>();
  auto late = std::make_shared<std::vector<int>>();
  {
    Worker worker(places);
    CHECK(RefusalId([&] {
            worker.Run(
                [latch, late] {
                  latch->Wait();
                  late->assign(1000, 7);
                  return late;
                },
                1ms);
          }) == "timeout");
    CHECK(places->alive() == 1);
    CHECK(worker.Run([] { return 3; }, 1h) == 3);
  }
  CHECK(places->alive() == 1);  // the worker is destroyed without waiting for it
  latch->Open();
  Await([&] { return places->alive() == 0; });
  CHECK(late.use_count() == 1);
  CHECK(late->size() == 1000);
}

TEST_CASE("worker: a late exception is dropped", "[worker]") {
  auto places = std::make_shared<Abandoned>();
  auto latch = std::make_shared<Latch>();
  Worker worker(places);
  auto work = [latch] {
    latch->Wait();
    throw std::runtime_error("late");
  };
  CHECK(RefusalId([&] { worker.Run(work, 1ms); }) == "timeout");
  latch->Open();
  Await([&] { return places->alive() == 0; });
  worker.Run([] {}, 1h);
}

TEST_CASE("worker: at most four tasks may hang; a slot is freed when one returns", "[worker]") {
  auto places = std::make_shared<Abandoned>();
  std::vector<std::shared_ptr<Latch>> latches;
  Worker worker(places);
  for (int i = 0; i < 4; ++i) {
    latches.push_back(std::make_shared<Latch>());
    CHECK(RefusalId([&] { worker.Run([latch = latches.back()] { latch->Wait(); }, 1ms); }) ==
          "timeout");
  }
  CHECK(places->alive() == 4);
  bool begun = false;
  CHECK_THROWS_WITH(worker.Run([&] { begun = true; }, 1h),
                    ContainsSubstring("4 abandoned predictions are still running"));
  CHECK(RefusalId([&] { Worker(places).Run([&] { begun = true; }, 1h); }) == "workers-hang");
  CHECK(!begun);
  CHECK(worker.Run([] { return 1; }, {}) == 1);  // without a deadline, no thread is abandoned
  latches[2]->Open();
  Await([&] { return places->alive() == 3; });
  CHECK(worker.Run([] { return 1; }, 1h) == 1);
  for (const auto& latch : latches) latch->Open();
  Await([&] { return places->alive() == 0; });
}

TEST_CASE("worker: the deadline includes waiting for a slot", "[worker]") {
  auto places = std::make_shared<Abandoned>(2);
  auto latch = std::make_shared<Latch>();
  auto begun = std::make_shared<std::atomic<int>>(0);
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([places, latch, begun] {
      Worker(places).Run([latch, begun] { ++*begun, latch->Wait(); }, 1h);
    });
  Await([&] { return *begun == 2; });
  Worker worker(places);
  CHECK_THROWS_AS(worker.Run([begun] { ++*begun; }, 1ms), NotBegun);
  CHECK(RefusalId([&] { worker.Run([begun] { ++*begun; }, 0ms); }) == "timeout");
  CHECK(places->alive() == 0);
  latch->Open();
  for (std::thread& caller : callers) caller.join();
  CHECK(*begun == 2);
  CHECK(worker.Run([] { return 1; }, 1h) == 1);
}

TEST_CASE("worker: concurrent callers abandon no more threads than allowed", "[worker]") {
  auto places = std::make_shared<Abandoned>();
  auto latch = std::make_shared<Latch>();
  std::atomic<int> timeouts = 0, refused = 0, most = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 12; ++i)
    callers.emplace_back([&] {
      Worker worker(places);
      for (int k = 0; k < 3; ++k) {
        const std::string id = ErrorId([&] { worker.Run([latch] { latch->Wait(); }, 2ms); });
        timeouts += id == "timeout";
        refused += id == "workers-hang";
        if (places->alive() > most) most = places->alive();
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(timeouts + refused ==
        36);  // a task that times out while waiting for a slot has not started
  CHECK(refused > 0);
  CHECK(most == 4);
  latch->Open();
  Await([&] { return places->alive() == 0; });
}

// Returns the exit status of a process whose main returns while a task hangs.
int StatusOfLeaving(bool past) {
  const pid_t child = fork();
  if (child == 0) {
    auto latch = std::make_shared<Latch>();
    Worker worker(std::make_shared<Abandoned>());
    const std::string id = RefusalId([&] { worker.Run([latch] { latch->Wait(); }, 1ms); });
    int code = id == "timeout" ? 3 : 99;
    if (past) code = ExitCodePastAbandoned(code);
    _exit(code + 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
TEST_CASE("worker: the process can end despite hanging threads", "[worker]") {
  CHECK(ExitCodePastAbandoned(5) == 5);  // nothing hangs, so main continues
  CHECK(StatusOfLeaving(true) == 3);     // main did not continue
  CHECK(StatusOfLeaving(false) == 4);
}

// Constructed before the first thread is abandoned, so destroyed after the worker's exit handler
// ran.
struct AtTheEnd {
  Latch* latch = nullptr;
  ~AtTheEnd() {
    if (!latch) return;
    latch->Open();
    usleep(50'000);
    _exit(6);
  }
} at_the_end;

// exit() runs while an abandoned thread returns; the data of the thread must not be destroyed any
// more.
TEST_CASE("worker: threads that return during static destruction destroy nothing", "[worker]") {
  const pid_t child = fork();
  if (child == 0) {
    struct Held {
      ~Held() { _exit(9); }
    };
    at_the_end.latch = new Latch;
    Worker worker(std::make_shared<Abandoned>());
    RefusalId([&] {
      worker.Run([held = std::make_shared<Held>(), latch = at_the_end.latch] { latch->Wait(); },
                 1ms);
    });
    exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 6);
}

}  // namespace
}  // namespace mlc::runtime
