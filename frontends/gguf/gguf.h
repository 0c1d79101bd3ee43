// frontends/gguf/gguf.h - .gguf files to Programs.
//
// Language models, as lib/networks/decoder.h packages them. Metadata keys are those of ggml's
// docs/gguf.md and llama.cpp's src/llama-arch.cpp.
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/ir/source_facts.h"
#include "lib/support/error.h"

namespace mlc {

// Weights are slices of the mapped file, blocks as they are. Errors of GgufFile, of BuildDecoder, and
// "unsupported-architecture", "unused-tensor", located. `facts`, if any, gets the files, of which there
// are several where a model is split.
Program ImportGguf(const std::filesystem::path& path, const ImportOptions& options,
                   Diagnostics& diagnostics, SourceFacts* facts = nullptr);

}  // namespace mlc
