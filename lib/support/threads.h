// lib/support/threads.h - a parallel loop over independent items.
#pragma once

#include <cstdint>
#include <functional>

namespace mlc {

// The maximum number of threads that a caller can ask for.
inline constexpr int kMostThreads = 1024;

// Returns the limit of the current WorkScope, the value of MLC_THREADS, or the number of hardware
// threads, reduced if memory is limited (ulimit -v, -d); at least 1. Error "usage" if the variable
// is not a number from 1 to kMostThreads.
int DefaultThreads();

// Calls fn(i) once for each i in [0, count) on up to `threads` threads (0: DefaultThreads()),
// including the caller's, which have the limits of its WorkScope. Items start in ascending order.
// After an exception no further items start; once all threads are done, the exception of the lowest item that threw is rethrown, as in
// a sequential loop.
void ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& fn);

}  // namespace mlc
