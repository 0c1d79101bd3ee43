// tools/mlc/parity.h - parity bundles on the command line: `run --bundle DIR` and
// `verify --result FILE`. Both return the exit code.
#pragma once

#include <filesystem>

#include "tools/mlc/command.h"
#include "tools/mlc/model.h"

namespace mlc {

int RunParity(const Invocation& invocation);
int CheckResult(const Invocation& invocation);
// Error "usage" where the flags have --no-compile and the model is anything but a compiled bundle.
void RequireBundle(const Invocation& invocation, const std::filesystem::path& path, Format format);

}  // namespace mlc
