// tools/mlc/passes.h - prints the output of --print-after and --time-passes to stderr.
#pragma once

#include "tools/driver/pipeline.h"

namespace mlc {

void ShowPasses(PassOptions& options);

}  // namespace mlc
