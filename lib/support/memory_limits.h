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

// Error "resource-limit", which names the limits that there are.
Error OutOfMemory(std::string text);

}  // namespace mlc
