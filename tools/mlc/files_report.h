// tools/mlc/files_report.h - prints the contents of GGUF files, Hugging Face folders and
// safetensors files as text or JSON.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"

namespace mlc::driver {

// These print text to stdout, or set the document of --json. `weights`: list every tensor.
void PrintGguf(const std::filesystem::path& path, bool weights, Session& session,
               nlohmann::ordered_json& document);
void PrintFolder(const std::filesystem::path& path, bool weights, Session& session,
                 nlohmann::ordered_json& document);

}  // namespace mlc::driver
