// frontends/safetensors/encoders.h - folders of encoders (BERT and its relatives) to Programs.
#pragma once

#include <string>

#include "frontends/safetensors/folder.h"
#include "lib/ir/program.h"

namespace mlc {

// Whether config.json's model_type has a row.
bool IsEncoder(const std::string& model_type);

// As lib/networks/encoder.h has it, with the head of config.json's `architectures`. Error "bad-file"
// for what does not fit together, "unsupported-operator" for what the row's network cannot do; with
// the place.
Program ImportEncoder(const Folder& folder, Diagnostics& diagnostics);

}  // namespace mlc
