// tools/mlc/inspect_gguf.h - what is in a GGUF file, as text and as JSON.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"

namespace mlc {

// On stdout. `weights`: every tensor by itself.
void PrintGguf(const std::filesystem::path& path, bool weights, Session& session);

}  // namespace mlc
