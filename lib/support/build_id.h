// lib/support/build_id.h - identifies the build of mlc.
#pragma once

#include <string>

namespace mlc {

// The linker's identifier of the binary that contains this code, in hexadecimal: the GNU build id,
// or the UUID of the Mach-O file on Apple systems. Changes with the code. Empty if there is none.
std::string BuildId();
// Returns BuildId(), or the hash of the executable if there is none. Never empty, for cache keys.
const std::string& BuildName();

}  // namespace mlc
