#include "lib/support/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#ifdef __APPLE__
#include <mach/mach.h>
#endif

namespace mlc {

int64_t ResidentBytes() {
#ifdef __APPLE__
  // The figure that the system's out-of-memory killer uses: compressed pages count, clean file
  // pages do not.
  task_vm_info_data_t info{};
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, reinterpret_cast<task_info_t>(&info), &count) !=
      KERN_SUCCESS)
    return 0;
  return static_cast<int64_t>(info.phys_footprint);
#else
  // proc(5): size and resident, in pages.
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

int64_t MachineMemory() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
#ifndef __APPLE__
  // Versions 2 and 1 of control groups; the file has "max" or a huge number if there is no limit.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (int64_t limit = 0; std::ifstream(path) >> limit && limit > 0)
      bytes = std::min(bytes, limit);
#endif
  return bytes;
}

}  // namespace mlc
