#include "lib/support/memory_limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <new>

namespace mlc {

namespace {
size_t Limit(int resource) {
  struct rlimit limit;
  bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : std::numeric_limits<size_t>::max();
}

struct LimitRow {
  int resource;
  const char* help;
};
constexpr LimitRow kLimits[] = {
    {RLIMIT_AS,
     "the address space is limited to {} MB: raise the limit (ulimit -v), or limit memory instead "
     "(ulimit -d)"},
    {RLIMIT_DATA, "memory is limited to {} MB: raise the limit (ulimit -d)"},
};
}  // namespace

size_t AddressLimit() { return Limit(RLIMIT_AS); }

bool IsMemoryLimited() {
  return std::ranges::any_of(kLimits, [](const LimitRow& row) {
    return Limit(row.resource) != std::numeric_limits<size_t>::max();
  });
}

size_t ThreadLimit() {
  // Each thread takes as many addresses as a program with one thread: allocators keep those that
  // they have used for a thread, and glibc's reserves 64 MB.
  constexpr size_t kAddresses = 128 << 20, kMemory = 32 << 20;
  return std::max<size_t>(1,
                          std::min(AddressLimit() / kAddresses, 1 + Limit(RLIMIT_DATA) / kMemory));
}

void RequireRoom(size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, bytes);
}

void RequireRoomForThreads(int count) {
  constexpr size_t kArena = 4 << 20;
  pthread_attr_t attributes;
  size_t stack = 0;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_destroy(&attributes);
  RequireRoom(static_cast<size_t>(count) * (stack + kArena));
}

Error OutOfMemory(std::string text) {
  Error error("resource-limit", std::move(text));
  for (const LimitRow& row : kLimits)
    if (size_t limit = Limit(row.resource); limit != std::numeric_limits<size_t>::max())
      error.Help(fmt::format(fmt::runtime(row.help), limit / 1'000'000));
  return error;
}

}  // namespace mlc
