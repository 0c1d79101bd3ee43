// frontends/safetensors/safetensors.h - folders of Hugging Face to Programs: config.json and
// .safetensors files.
//
// Language models, as lib/networks/decoder.h packages them, and encoders (lib/networks/encoder.h). What config.json says is read as
// transformers does (its models/MODEL_TYPE/configuration_*.py).
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/ir/source_facts.h"
#include "lib/support/error.h"

namespace mlc {

// Weights are slices of the mapped files. Errors of Folder, of BuildDecoder and BuildEncoder, and
// "unsupported-architecture", "unused-tensor", located. `facts`, if any, gets the files.
Program ImportHuggingFace(const std::filesystem::path& folder, const ImportOptions& options,
                          Diagnostics& diagnostics, SourceFacts* facts = nullptr);

}  // namespace mlc
