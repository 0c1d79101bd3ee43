#include "lib/support/threads.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/catch.h"

namespace mlc {
namespace {

TEST_CASE("threads: every item is processed once") {
  for (int threads : {1, 2, 7}) {
    for (int64_t count : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      ParallelFor(count, threads, [&](int64_t i) { ++done[i]; });
      for (auto& times : done) CHECK(times == 1);
    }
  }
}

TEST_CASE("threads: the exception of the first failing item is rethrown and work stops") {
  for (int threads : {1, 4}) {
    std::atomic<int> begun = 0;
    auto work = [&](int64_t i) {
      ++begun;
      if (i == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (i == 3 || i == 4) throw std::runtime_error("item " + std::to_string(i));
    };
    CHECK_THROWS_WITH(ParallelFor(1000000, threads, work), "item 3");
    CHECK(begun < 1000000);
  }
}

TEST_CASE("threads: MLC_THREADS") {
  const char* before = getenv("MLC_THREADS");
  std::string saved = before ? before : "";
  setenv("MLC_THREADS", "3", 1);
  CHECK(DefaultThreads() == 3);
  for (const char* bad : {"0", "-1", "two", "3x", "99999999999"}) {
    setenv("MLC_THREADS", bad, 1);
    CHECK_THROWS_WITH(DefaultThreads(), ContainsSubstring("MLC_THREADS"));
  }
  unsetenv("MLC_THREADS");
  CHECK(DefaultThreads() >= 1);
  if (before) setenv("MLC_THREADS", saved.c_str(), 1);
}

}  // namespace
}  // namespace mlc
