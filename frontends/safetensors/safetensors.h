// frontends/safetensors/safetensors.h - imports Hugging Face folders (config.json and .safetensors
// files) as Programs.
//
// The Programs are those of lib/networks/decoder.h and encoder.h. config.json is interpreted as in
// transformers (models/MODEL_TYPE/configuration_*.py).
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/ir/source_facts.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

// Imports a folder. Weights are slices of the mapped files. Errors, with the place: those of
// Folder, BuildDecoder and BuildEncoder, "unsupported-architecture", "unused-tensor". `facts`, if
// not null, receives the files.
Program ImportHuggingFace(const std::filesystem::path& folder, const ImportOptions& options,
                          Diagnostics& diagnostics, SourceFacts* facts = nullptr);

// Returns the values of model_type that are read, by kind of network ("decoder").
std::map<std::string, std::set<std::string>> HuggingFaceModelTypes();

}  // namespace mlc::safetensors
