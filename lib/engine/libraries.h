// lib/engine/libraries.h - what the engine computes with besides its own kernels.
#pragma once

#include "lib/support/library_version.h"

namespace mlc {

LibraryVersion EngineLibrary();  // oneDNN
// A function of oneDNN's library, or of what that library stands on; null where there is none.
void* EngineSymbol(const char* name);

}  // namespace mlc
