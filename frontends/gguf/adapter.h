// frontends/gguf/adapter.h - adapters of low rank in .gguf files, for the model of another .gguf file.
//
// The format is that of llama.cpp (convert_lora_to_gguf.py, src/llama-adapter.cpp): general.type
// "adapter", adapter.type "lora", the architecture of the model, adapter.lora.alpha, and for each changed
// tensor NAME.lora_a [r, in] and NAME.lora_b [out, r], of which the first is transposed for token_embd.
#pragma once

#include <filesystem>
#include <vector>

#include "frontends/gguf/file.h"
#include "lib/ir/import_options.h"
#include "lib/networks/low_rank.h"
#include "lib/support/error.h"

namespace mlc::gguf {

// Reads an adapter for a model. Error "bad-file" for other files and other architectures; "bad-name" for
// tensors that the model lacks, all together; "missing-tensor" for half a pair; "bad-tensor" for an
// adapter of a model of other sizes.
networks::Adapter ReadAdapter(const ImportOptions::Lora& lora, const GgufFile& model,
                              Diagnostics& diagnostics);
// Returns the model with the changes of all adapters, in this order. The files that were read are
// appended to `read`.
GgufFile WithAdapters(GgufFile model, const std::vector<ImportOptions::Lora>& loras,
                      Diagnostics& diagnostics, std::vector<std::filesystem::path>& read);

}  // namespace mlc::gguf
