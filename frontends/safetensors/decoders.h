// frontends/safetensors/decoders.h - imports folders of language models as Programs of
// lib/networks/decoder.h.
#pragma once

#include <cstdint>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

// The functions and masks that a model that reads pictures adds to its language model
// (lib/networks/decoder.h).
struct DecoderForm {
  bool embeds = false;  // the functions `embeds` and `embed_tokens`
  bool scales_embeds = false, masks_given = false;
  std::vector<int64_t> rotary_sections = {};
  bool alternating_sections = false;
  int64_t deepstack_layers = 0;
};

// Imports a folder with a row in decoder_rows.h. The errors are those of ImportHuggingFace.
Program ImportDecoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      const DecoderForm& form);

}  // namespace mlc::safetensors
