// lib/support/threads.h - a loop over independent items on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace mlc {

// MLC_THREADS, or what the hardware has, fewer where memory is limited (ulimit -v, -d); at least 1.
// Error "usage" when the variable is not a number from 1 to 1024.
int DefaultThreads();

// Calls fn(i) for every i in [0, count), each once, on up to `threads` threads (0:
// DefaultThreads()), the caller's among them. Items are begun in ascending order. After an
// exception no new items are begun; the exception of the lowest item that threw, which is the one a
// plain loop would have met, is rethrown when all threads are done.
void ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& fn);

}  // namespace mlc
