// tools/driver/compiled.h - what a runtime loads of a model: its compiled bundle.
#pragma once

#include <filesystem>

#include "lib/runtime/runtime.h"

namespace mlc {

struct CompiledModel {
  std::filesystem::path path;
  bool made = false;  // now
};
CompiledModel CompiledFor(Runtime& runtime, const std::filesystem::path& model, Units units);

}  // namespace mlc
