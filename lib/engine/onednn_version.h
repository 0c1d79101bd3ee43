// lib/engine/onednn_version.h - the third-party library of the engine.
#pragma once

#include "lib/support/library_version.h"

namespace mlc::engine {

LibraryVersion EngineLibrary();  // oneDNN
// Returns a function of oneDNN or of its OpenMP runtime, or null.
void* EngineSymbol(const char* name);

}  // namespace mlc::engine
