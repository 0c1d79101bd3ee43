// tools/mlc/chat.h - `mlc run MODEL --chat` without a prompt: a conversation on the terminal.
#pragma once

#include <filesystem>

#include "tools/mlc/text_modes.h"

namespace mlc::driver {

// Reads messages and commands until /exit or the end of the input, and prints the answers. Without a
// terminal, each line is a message, and the output has the answers alone, one after another; the
// exit code is then that of the first error.
int RunChat(const std::filesystem::path& model, const BenchmarkOptions& run,
            const TextArguments& text, Session& session);

}  // namespace mlc::driver
