// lib/support/build_id.h - which build of mlc this is.
#pragma once

#include <string>

namespace mlc {

// What the linker wrote into the file that this code was loaded from, in hexadecimal: the GNU build
// id, on Apple the UUID of the Mach-O file. It changes with the code. Empty where there is none.
std::string BuildId();

}  // namespace mlc
