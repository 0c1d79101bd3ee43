// tools/mlc/pass_output.h - prints the output of --print-after and --time-passes to stderr.
#pragma once

#include "tools/driver/run_passes.h"

namespace mlc::driver {

void ShowPasses(PassOptions& options);

}  // namespace mlc::driver
