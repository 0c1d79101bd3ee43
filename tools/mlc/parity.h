// tools/mlc/parity.h - parity bundles on the command line: `run --bundle DIR` and
// `verify --result FILE`. Both return the exit code.
#pragma once

#include "tools/mlc/command.h"

namespace mlc {

int RunParity(const Invocation& invocation);
int CheckResult(const Invocation& invocation);

}  // namespace mlc
