// frontends/safetensors/adapter.h - adapters of PEFT for the model of a Hugging Face folder.
//
// A folder of PEFT (github.com/huggingface/peft, src/peft/utils/save_and_load.py) has
// adapter_config.json and adapter_model.safetensors, with tensors named after modules of the model:
//
//   base_model.model.PATH.lora_A.weight [r, in], .lora_B.weight [out, r]   linear layers, convolutions
//   base_model.model.PATH.lora_embedding_A [r, rows], .lora_embedding_B [width, r]
//   base_model.model.PATH.lora_magnitude_vector                             DoRA
//   base_model.model.PATH.lora_B.bias                                       lora_bias
//   base_model.model.PATH.weight, .bias                    whole tensors: modules_to_save and `bias`
//
// PATH is a module of the class that was trained, with either spelling of the folder's names.
#pragma once

#include <filesystem>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/networks/low_rank.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

// Reads an adapter for a folder. Error "unsupported-architecture" for kinds of adapters other than LoRA
// and DoRA; "bad-name" for modules that the folder lacks, all together; "missing-tensor" for half a
// pair; "bad-tensor" for an adapter of a model of other sizes; "bad-file", "file-io".
networks::Adapter ReadAdapter(const ImportOptions::Lora& lora, const Folder& folder,
                              Diagnostics& diagnostics);
// Returns the folder with the changes of all adapters, in this order. The files that were read are
// appended to `read`.
Folder WithAdapters(Folder folder, const std::vector<ImportOptions::Lora>& loras,
                    Diagnostics& diagnostics, std::vector<std::filesystem::path>& read);

}  // namespace mlc::safetensors
