#include "lib/engine/omp_parallel.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "test/catch.h"

namespace mlc::test {
using namespace engine;
namespace {

TEST_CASE("OnTeam calls the function once per item") {
  for (int threads : {1, 2, 5})
    for (int64_t count : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      OmpParallelFor(count, threads, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
      for (const auto& each : done) CHECK(each == 1);
    }
}

TEST_CASE("OnTeam rethrows an exception at the end") {
  for (int threads : {1, 2, 5}) {
    std::atomic<int> done = 0;
    CHECK_THROWS_AS(OmpParallelFor(20, threads,
                                   [&](int64_t i) {
                                     if (i == 19) throw std::bad_alloc();
                                     ++done;
                                   }),
                    std::bad_alloc);
    CHECK(done == 19);
  }
}

TEST_CASE("OnTeamInParts covers each element once, and uses one part for little work") {
  for (int threads : {1, 2, 5})
    for (int64_t cost : {1, 1000})
      for (int64_t count : {0, 1, 3, 32, 33, 32767, 32768, 50001}) {
        INFO(threads << " threads, " << count << " of " << cost);
        std::vector<std::atomic<int>> done(static_cast<size_t>(count));
        std::atomic<int> parts = 0;
        auto part = [&](int64_t first, int64_t end) {
          ++parts;
          for (int64_t i = first; i < end; ++i) ++done[static_cast<size_t>(i)];
        };
        OmpParallelForRanges(count, threads, part, cost);
        int64_t once = 0;
        for (const auto& each : done) once += each == 1;
        CHECK(once == count);
        const bool small = threads == 1 || count * cost < kParallelGrain;
        CHECK((parts == 1) == (small || count == 1));
      }
}

#if defined(__linux__) && defined(__x86_64__)
// Spinning threads never cause voluntary context switches, and sleeping threads cause one each
// time.
TEST_CASE("idle threads of a team sleep") {
  if (std::thread::hardware_concurrency() < 2 || getenv("OMP_WAIT_POLICY") ||
      getenv("GOMP_SPINCOUNT")) {
    WARN("skipped: there is one processor, or the environment says how threads wait");
    return;
  }
  // The caller's own waiting is not counted.
  auto sleeps_of_others = [] {
    rusage all, own;
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return all.ru_nvcsw - own.ru_nvcsw;
  };
  auto run = [](int times) {
    for (int i = 0; i < times; ++i) {
      OmpParallelFor(2, 2, [](int64_t) {});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  run(5);
  const long before = sleeps_of_others();
  run(100);
  CHECK(sleeps_of_others() - before >= 50);
}
#endif

}  // namespace
}  // namespace mlc::test
