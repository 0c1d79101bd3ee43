// frontends/gguf/encoders.h - .gguf files of encoders to Programs, as lib/networks/encoder.h has them.
#pragma once

#include "frontends/gguf/file.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc {

// Of a file whose architecture is one of lib/networks/encoder_architectures.h, with the pooling that its
// `pooling_type` says; embeddings are not normalised, as llama.cpp leaves them. Errors as ImportGguf's.
Program ImportGgufEncoder(const GgufFile& file, const ImportOptions& options,
                          Diagnostics& diagnostics);

}  // namespace mlc
