// tools/mlc/sizes.h - --shape and --dim for programs whose inputs have their bounds already.
#pragma once

#include "tools/mlc/model.h"

namespace mlc {

// A program that is to be run. ONNX: as ImportModel. Else --shape and --dim choose among the sizes
// that the open dimensions of inputs have, in each function that takes them. Error "bad-input"
// where none does, "bad-name" for a name that nothing has, unless `may_lack` names (those of
// another program).
Program ImportToRun(const std::filesystem::path& path, const OnnxOptions& options, bool may_lack,
                    Diagnostics& diagnostics);

}  // namespace mlc
