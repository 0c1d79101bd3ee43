// lib/support/memory_use.h - memory use of the process.
#pragma once

#include <cstdint>

namespace mlc {

// Current resident memory in bytes: /proc/self/statm, or task_info on Apple systems. 0 if unknown.
int64_t ResidentBytes();
// Peak resident memory in bytes: getrusage.
int64_t PeakMemoryBytes();
// The memory of the machine in bytes, or the limit of the container (cgroup) if it is lower.
int64_t MachineMemory();

}  // namespace mlc
