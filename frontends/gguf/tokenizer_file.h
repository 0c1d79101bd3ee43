// frontends/gguf/tokenizer_file.h - a model's tokenizer as a file of its own: a GGUF file without
// tensors.
#pragma once

#include <string>

#include "frontends/gguf/file.h"

namespace mlc {

// Returns a GGUF file (version 3) with general.architecture and the keys "tokenizer.*" of `file`,
// byte for byte; tools that read GGUF vocabularies can read it. Empty: the file has no tokenizer.
std::string GgufTokenizerFile(const GgufFile& file);
// Whether a file has these keys and nothing else.
bool IsGgufTokenizerFile(const GgufFile& file);

}  // namespace mlc
