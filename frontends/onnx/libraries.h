// frontends/onnx/libraries.h - what reads ONNX's messages.
#pragma once

#include <vector>

#include "lib/support/library_version.h"

namespace mlc {

std::vector<LibraryVersion> OnnxLibraries();  // protobuf, onnx

}  // namespace mlc
