// lib/support/memory_use.h - how much memory the process takes.
#pragma once

#include <cstdint>

namespace mlc {

// In RAM now: /proc/self/statm, on Apple task_info. 0 where the system does not say.
int64_t ResidentBytes();
// The most that ever was in RAM: getrusage.
int64_t PeakMemoryBytes();

}  // namespace mlc
