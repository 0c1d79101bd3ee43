// frontends/safetensors/vision_models.h - imports folders of vision transformers, and of pairs of
// towers for pictures and texts, as Programs.
#pragma once

#include <filesystem>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"

namespace mlc::safetensors {

bool IsVisionModel(const Config& config);

// Imports a folder as described in lib/networks/vision_model.h, with the head of config.json's
// `architectures`. The input is described in image_processor.h; `--outputs` selects outputs, and
// `--dim tokens` limits the number of tokens of a text. Errors, with the place: those of
// BuildVisionModel, "unsupported-architecture", "unused-tensor", "usage", "bad-name".
Program ImportVisionModel(const Folder& folder, const ImportOptions& options,
                          Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);

}  // namespace mlc::safetensors
