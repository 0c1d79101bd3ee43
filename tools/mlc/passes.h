// tools/mlc/passes.h - what --print-after and --time-passes show, on stderr.
#pragma once

#include "tools/driver/pipeline.h"

namespace mlc {

void ShowPasses(PassOptions& options);

}  // namespace mlc
