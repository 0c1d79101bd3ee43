// tools/mlc/inspect_folder.h - what is in a Hugging Face folder or a safetensors file, as text and as JSON.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"

namespace mlc {

// On stdout. `weights`: every tensor by itself.
void PrintFolder(const std::filesystem::path& path, bool weights, Session& session);

}  // namespace mlc
