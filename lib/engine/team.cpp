#include "lib/engine/team.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

namespace mlc {

namespace {

// Of GCC's OpenMP library, and LLVM's too: `fn` on each of so many threads.
using Parallel = void (*)(void (*fn)(void*), void* data, unsigned threads, unsigned flags);

}  // namespace

void OnTeam(int64_t count, int threads, const std::function<void(int64_t)>& fn) {
  static const auto parallel = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  struct Work {
    std::atomic<int64_t> next = 0;
    int64_t count;
    const std::function<void(int64_t)>& fn;
  } work{.count = count, .fn = fn};
  auto run = [](void* data) {
    Work& work = *static_cast<Work*>(data);
    for (int64_t i; (i = work.next++) < work.count;) work.fn(i);
  };
  if (parallel && threads > 1 && count > 1)
    parallel(run, &work, static_cast<unsigned>(std::min<int64_t>(threads, count)), 0);
  else
    run(&work);
}

void OnTeamInParts(int64_t count, int threads, const std::function<void(int64_t, int64_t)>& fn,
                   int64_t element_cost) {
  if (count * element_cost < kWorthTeam || threads == 1) return fn(0, count);
  const int64_t parts = std::min<int64_t>(count, int64_t{4} * threads);
  OnTeam(parts, threads,
         [&](int64_t part) { fn(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace mlc
