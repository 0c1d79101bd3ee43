// frontends/gguf/gguf.h - imports .gguf files as Programs.
//
// The Programs are those of lib/networks/decoder.h and encoder.h. Metadata keys are those of ggml's
// docs/gguf.md and llama.cpp's src/llama-arch.cpp.
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/ir/source_facts.h"
#include "lib/support/error.h"

namespace mlc::gguf {

// Imports a file. Weights are slices of the mapped file; blocks keep their encoding. Errors, with
// the place: those of GgufFile and BuildDecoder, "unsupported-architecture", "unused-tensor".
// `facts`, if not null, receives the files of a split model.
Program ImportGguf(const std::filesystem::path& path, const ImportOptions& options,
                   Diagnostics& diagnostics, SourceFacts* facts = nullptr);

}  // namespace mlc::gguf
