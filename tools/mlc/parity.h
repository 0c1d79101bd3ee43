// tools/mlc/parity.h - what `run --bundle` and `verify --result` print.
#pragma once

#include <filesystem>
#include <string>

#include "lib/verify/parity.h"
#include "tools/mlc/command.h"

namespace mlc {

// A JSON object.
std::string ParityJson(const ParityResult& result);
// Returns the exit code. `written`: the result file, where it was written just now.
int ShowParity(const ParityResult& result, const Session& session,
               const std::filesystem::path& written = {});

}  // namespace mlc
