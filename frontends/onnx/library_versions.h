// frontends/onnx/library_versions.h - versions of the libraries that parse ONNX files.
#pragma once

#include <vector>

#include "lib/support/library_version.h"

namespace mlc::onnx {

std::vector<LibraryVersion> OnnxLibraries();  // protobuf, onnx

}  // namespace mlc::onnx
