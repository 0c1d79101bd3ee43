// frontends/gguf/tokenizer_file.h - writes a model's tokenizer to a separate file: a GGUF file
// without tensors.
#pragma once

#include <string>

#include "frontends/gguf/file.h"

namespace mlc::gguf {

// Returns a GGUF file (version 3) with general.architecture and the keys "tokenizer.*" of `file`,
// copied byte for byte; tools that read GGUF vocabularies can read it. Returns an empty string if
// the file has no tokenizer.
std::string GgufTokenizerFile(const GgufFile& file);
// Returns whether a file has only these keys and no tensors.
bool IsGgufTokenizerFile(const GgufFile& file);

}  // namespace mlc::gguf
