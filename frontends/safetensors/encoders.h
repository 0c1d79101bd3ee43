// frontends/safetensors/encoders.h - imports folders of encoders (BERT and its relatives) as
// Programs.
#pragma once

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"

namespace mlc::safetensors {

bool IsEncoder(const Config& config);  // whether the model is a supported encoder

// Imports a folder as described in lib/networks/encoder.h, with the head of config.json's
// `architectures` or, for sentence-transformers (modules.json), its pooling. --dim tokens limits
// the number of tokens. `read`, if not null, receives the files that were read in addition to those
// of the folder. Errors, with the place: those of BuildEncoder, "unsupported-architecture",
// "unused-tensor", "usage", "bad-name".
Program ImportEncoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      std::vector<std::filesystem::path>* read = nullptr);

}  // namespace mlc::safetensors
