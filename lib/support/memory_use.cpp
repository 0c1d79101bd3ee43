#include "lib/support/memory_use.h"

#include <sys/resource.h>

#ifdef __APPLE__
#include <mach/mach.h>
#else
#include <unistd.h>

#include <cstdio>
#endif

namespace mlc {

int64_t ResidentBytes() {
#ifdef __APPLE__
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&info),
                &count) != KERN_SUCCESS)
    return 0;
  return static_cast<int64_t>(info.resident_size);
#else
  // Of proc(5): size and resident, in pages.
  long long size = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  const int read = std::fscanf(file, "%lld %lld", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
#endif
}

int64_t PeakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return int64_t{usage.ru_maxrss} * 1024;
#endif
}

}  // namespace mlc
