// frontends/gguf/encoders.h - imports encoders from .gguf files as Programs of
// lib/networks/encoder.h.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "frontends/gguf/file.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"

namespace mlc::gguf {

bool IsGgufEncoder(std::string_view architecture);  // whether the architecture is supported
std::set<std::string> GgufEncoderNames();

// Imports a file whose architecture satisfies IsGgufEncoder, with the pooling of its
// `pooling_type`. Embeddings are not normalised, as in llama.cpp. The errors are those of
// ImportGguf.
Program ImportGgufEncoder(const GgufFile& file, const ImportOptions& options,
                          Diagnostics& diagnostics);

}  // namespace mlc::gguf
