// tools/mlc/folder_report.h - prints the contents of a Hugging Face folder or a safetensors file
// as text or JSON.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"

namespace mlc::driver {

// Prints to stdout. `weights`: list every tensor.
void PrintFolder(const std::filesystem::path& path, bool weights, Session& session);

}  // namespace mlc::driver
