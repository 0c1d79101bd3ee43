// tools/mlc/gguf_report.h - prints the contents of a GGUF file as text or JSON.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"

namespace mlc::driver {

// Prints to stdout. `weights`: list every tensor.
void PrintGguf(const std::filesystem::path& path, bool weights, Session& session);

}  // namespace mlc::driver
