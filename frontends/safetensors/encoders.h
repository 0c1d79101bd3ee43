// frontends/safetensors/encoders.h - folders of encoders (BERT and its relatives) to Programs.
#pragma once

#include <string>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"

namespace mlc {

bool IsEncoder(const Config& config);  // whether there is a row for it

// Imports a folder as lib/networks/encoder.h describes, with the head of config.json's
// `architectures` or, for sentence-transformers (modules.json), its pooling. --dim tokens limits
// the number of tokens. `read`, if any, gets the files that were read besides those of the folder.
// Errors, with the place: those of BuildEncoder, "unsupported-architecture", "unused-tensor",
// "usage", "bad-name".
Program ImportEncoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      std::vector<std::filesystem::path>* read = nullptr);

}  // namespace mlc
