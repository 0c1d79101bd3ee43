#include "lib/support/threads.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "lib/support/error.h"
#include "lib/support/memory_limits.h"
#include "lib/support/work_scope.h"

namespace mlc {

int DefaultThreads() {
  const int most = static_cast<int>(std::min<size_t>(ThreadLimit(), INT_MAX));
  if (const int threads = WorkScope::Current().threads; threads > 0) return std::min(threads, most);
  if (const char* text = std::getenv("MLC_THREADS"); text && *text) {
    std::string_view view = text;
    int value = 0;
    auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc() || end != view.data() + view.size() || value < 1 ||
        value > kMostThreads)
      throw Error("usage", "MLC_THREADS is \"{}\"", view)
          .Expected("a number from 1 to {}", kMostThreads);
    return std::min(value, most);
  }
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most);
}

void ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& fn) {
  int64_t wanted = std::min<int64_t>(threads > 0 ? threads : DefaultThreads(), count);
  if (wanted <= 1) {
    for (int64_t i = 0; i < count; ++i) {
      ThrowIfCancelled();
      fn(i);
    }
    return;
  }
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  int64_t first_failed = count;
  std::exception_ptr exception;
  const WorkLimits limits = WorkScope::Current();
  auto work = [&] {
    const WorkScope scope(limits);
    for (int64_t i; !failed && (i = next++) < count;) {
      try {
        ThrowIfCancelled();
        fn(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < first_failed) {
          first_failed = i;
          exception = std::current_exception();
        }
        failed = true;
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (int64_t t = 1; t < wanted; ++t) {
      RequireRoomForThreads(1);
      others.emplace_back(work);
    }
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
    // If the system cannot create more threads, the existing ones do the work.
  }
  work();
  for (std::thread& thread : others) thread.join();
  if (exception) std::rethrow_exception(exception);
}

}  // namespace mlc
