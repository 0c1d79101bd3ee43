// tools/driver/allocator.h - jemalloc, with which the programs are linked where it was found.
#pragma once

#include <string>

namespace mlc::driver {

// The version of jemalloc, for example "5.3.0"; empty if the program is linked without it.
std::string JemallocVersion();

// Limits how much memory jemalloc requests in advance, if memory or addresses are limited. By default
// it requests ever larger pieces, so that a command fails under some limits although it succeeds
// under lower ones. The setting applies to the whole process, so that only programs call this, at
// their start, and libraries do not.
void AllocateLittleAhead();

}  // namespace mlc::driver
