// tools/driver/allocator.h - jemalloc, with which the programs are linked where it was found.
#pragma once

#include <string>

namespace mlc::driver {

// The version of jemalloc, for example "5.3.0"; empty if the program is linked without it.
std::string JemallocVersion();

// Where memory or addresses are limited, makes jemalloc take from the system little more than is
// needed. By default it takes ever larger pieces in advance, so that a command fails under some
// limits although it succeeds under lower ones. Changes the whole process: called at the start of a
// program, never by a library.
void AllocateLittleAhead();

}  // namespace mlc::driver
