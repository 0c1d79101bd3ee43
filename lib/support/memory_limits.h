// lib/support/memory_limits.h - resource limits of the process, and the error for exceeding them.
#pragma once

#include <cstddef>
#include <string>

#include "lib/support/error.h"

namespace mlc {

// The address space limit in bytes (ulimit -v), which includes code, thread stacks and mapped
// files; the maximum of size_t if there is no limit.
size_t AddressLimit();
// Returns whether addresses or memory (ulimit -d) are limited.
bool IsMemoryLimited();
// The number of threads that fit the limits, given a stack, allocator arenas and buffers for each,
// and 128 MB of addresses for the program; at least 1.
size_t ThreadLimit();

// Throws std::bad_alloc unless `bytes` bytes are available now. Used before library calls that
// abort when memory runs out.
void RequireRoom(size_t bytes);
// The same for the stacks and allocator arenas of additional threads.
void RequireRoomForThreads(int count);

// Error "resource-limit", which names the limits in effect.
Error OutOfMemory(std::string text);

}  // namespace mlc
