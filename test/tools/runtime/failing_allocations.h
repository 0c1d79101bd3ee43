// test/tools/runtime/failing_allocations.h - lets an allocation of the current thread fail.
#pragma once

#include <cstdint>

namespace mlc::test {

// The number of allocations of this thread until one fails; below 0: none fails.
extern thread_local int64_t allocations_left;

}  // namespace mlc::test
