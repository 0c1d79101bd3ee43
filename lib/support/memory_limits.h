// lib/support/memory_limits.h - limits that the process was given, and what to say where they are
// met.
#pragma once

#include <cstddef>
#include <string>

#include "lib/support/error.h"

namespace mlc {

// Bytes of addresses that the process may take (ulimit -v), for its code, threads' stacks and mapped
// files too; the greatest number where there is no limit.
size_t AddressLimit();
// So many threads, of which each may take a stack, what allocators set aside and buffers, leave enough
// below the limits that there are: at least 1.
size_t ThreadLimit();

// std::bad_alloc unless there is room for so many bytes now: for calls of libraries that end the
// process, or worse, where there is none.
void RequireRoom(size_t bytes);
// The same for so many threads more: their stacks, and what allocators set aside for each.
void RequireRoomForThreads(int count);

// Error "resource-limit", which names the limits that there are.
Error OutOfMemory(std::string text);

}  // namespace mlc
