#include "lib/engine/omp_parallel.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <vector>

#include "lib/engine/onednn_version.h"
#include "lib/support/memory_limits.h"

namespace mlc::engine {

namespace {

// Functions of the OpenMP libraries of GCC and LLVM: one calls `fn` on each of `threads` threads,
// the other returns the number of the calling thread. They are looked up in the library that oneDNN
// uses, since the process may have loaded another one.
using Parallel = void (*)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);
using Number = int (*)();
Parallel GetParallel() {
  static const auto parallel = reinterpret_cast<Parallel>(EngineSymbol("GOMP_parallel"));
  return parallel;
}

// With more processors than this, other processes rarely use all of them.
constexpr int kMostProcessors = 32;

// Prevents the threads of a team from spinning for long while they wait for each other.
//
// Threads of GCC's OpenMP library spin for 300,000 iterations, about 10 ms, before they sleep. If
// other processes need the same processors, spinning takes the time that the awaited thread needs:
// next to four busy processes, a prompt of six tokens took thirty times as long. The library spins
// for only 1,000 iterations while it manages more threads than there are processors (libgomp:
// config/linux/wait.h, env.c); otherwise only the environment at the start of the process
// determines this. Therefore this function adds a team of sleeping threads, as many as there are
// processors, once per process and with signals blocked. It does nothing if memory is limited or if
// the environment sets a wait policy.
void ShortenWaiting() {
  static std::atomic<int> asleep = 0;
  static const int processors = [] {
    const auto number = reinterpret_cast<Number>(EngineSymbol("omp_get_num_procs"));
    const int count = number ? number() : 0;
    constexpr size_t kUnlimited = 1 << 20;
    if (count < 2 || count > kMostProcessors || ThreadLimit() < kUnlimited) return 0;
    if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return 0;
    return count;
  }();
  static const bool once = [] {
    if (processors == 0) return false;
    auto team = [](void*) -> void* {
      auto sleep = [](void*) {
        ++asleep;
        asleep.notify_all();
        for (;;) pause();
      };
      GetParallel()(sleep, nullptr, static_cast<unsigned>(processors), 0);
      return nullptr;
    };
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t first;
    const bool made = pthread_create(&first, nullptr, team, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!made) return false;
    pthread_detach(first);
    // The library creates all threads before the first of them starts; it may create fewer
    // (OMP_THREAD_LIMIT).
    asleep.wait(0);
    return true;
  }();
  (void)once;
}

}  // namespace

void ExpectThreads(int threads) {
  static thread_local int last = 1;
  if (threads > last && GetParallel()) {
    ShortenWaiting();
    RequireRoomForThreads(threads - 1);
    // The allocator reserves its per-thread memory at the first call.
    auto allocate = [](void*) {
      void* volatile any = std::malloc(1);
      std::free(any);
    };
    GetParallel()(allocate, nullptr, static_cast<unsigned>(threads), 0);
  }
  if (threads > 1) last = threads;
}

void OmpParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& fn) {
  static const auto number = reinterpret_cast<Number>(EngineSymbol("omp_get_thread_num"));
  if (!GetParallel() || !number || threads == 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) fn(i);
    return;
  }
  struct Work {
    int64_t count;
    int threads;
    const std::function<void(int64_t)>& fn;
    std::vector<std::atomic<bool>> taken;
    // Synchronise the caller and the threads before and after the loop for the thread sanitizer,
    // which does not see OpenMP's own synchronisation.
    std::atomic<int> begun = 0, ended = 0;
    std::atomic<bool> failed = false;
    std::exception_ptr failure =
        nullptr;  // the first exception; OpenMP does not propagate exceptions
  } work{count, static_cast<int>(std::min<int64_t>(threads, count)), fn,
         std::vector<std::atomic<bool>>(static_cast<size_t>(count))};
  auto run = [](void* data) {
    Work& work = *static_cast<Work*>(data);
    work.begun.load(std::memory_order_acquire);
    // Start with this thread's own share, which is likely to be in its cache, then take what others
    // left.
    const int64_t first = work.count * number() / work.threads;
    for (int64_t k = 0; k < work.count; ++k) {
      const int64_t i = (first + k) % work.count;
      if (work.taken[i].exchange(true)) continue;
      try {
        work.fn(i);
      } catch (...) {
        if (!work.failed.exchange(true)) work.failure = std::current_exception();
      }
    }
    work.ended.fetch_add(1, std::memory_order_release);
  };
  ExpectThreads(work.threads);
  work.begun.store(1, std::memory_order_release);
  GetParallel()(run, &work, static_cast<unsigned>(work.threads), 0);
  work.ended.load(std::memory_order_acquire);
  if (work.failure) std::rethrow_exception(work.failure);
}

void OmpParallelForRanges(int64_t count, int threads,
                          const std::function<void(int64_t, int64_t)>& fn, int64_t element_cost) {
  if (count * element_cost < kParallelGrain || threads == 1) return fn(0, count);
  const int64_t parts = std::min<int64_t>(count, int64_t{4} * threads);
  OmpParallelFor(parts, threads,
                 [&](int64_t part) { fn(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace mlc::engine
