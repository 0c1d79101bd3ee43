// lib/engine/omp_parallel.h - short parallel loops on oneDNN's thread team.
#pragma once

#include <cstdint>
#include <functional>

namespace mlc::engine {

// Creates the OpenMP threads in advance. Throws std::bad_alloc if there is not enough memory for
// them, where OpenMP would end the process.
void ExpectThreads(int threads);

// Calls fn(i) once for every i in [0, count), on up to `threads` threads including the caller's.
// The others are OpenMP threads, which spin for a while between loops; without OpenMP only the
// caller's thread is used. If calls throw, one of the exceptions is rethrown at the end.
void OmpParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& fn);

// The minimum number of elements per thread that pays off, for one nanosecond per element.
inline constexpr int64_t kParallelGrain = 1 << 15;
// Calls fn(first, end) for parts that cover [0, count); for few elements there is only one part.
void OmpParallelForRanges(int64_t count, int threads,
                          const std::function<void(int64_t, int64_t)>& fn,
                          int64_t element_cost = 1);

}  // namespace mlc::engine
