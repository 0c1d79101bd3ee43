// lib/engine/libraries.h - what the engine computes with besides its own kernels.
#pragma once

#include "lib/support/library_version.h"

namespace mlc {

LibraryVersion EngineLibrary();  // oneDNN

}  // namespace mlc
