// frontends/safetensors/encoders.h - folders of encoders (BERT and its relatives) to Programs.
#pragma once

#include <string>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"

namespace mlc {

bool IsEncoder(const Config& config);  // whether there is a row for it

// As lib/networks/encoder.h has it, with the head of config.json's `architectures` or, where the folder
// is one of sentence-transformers (modules.json), its pooling. --dim tokens says how many there may be.
// `read`, if any, gets the files that were read beside those of the folder. Errors of BuildEncoder;
// "unsupported-architecture" for what the row's network is not, "unused-tensor", "usage", "bad-name";
// with the place.
Program ImportEncoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      std::vector<std::filesystem::path>* read = nullptr);

}  // namespace mlc
