// frontends/gguf/tokenizer_file.h - a model's tokenizer as a file of its own: a GGUF file without tensors.
#pragma once

#include <string>

#include "frontends/gguf/file.h"

namespace mlc {

// A GGUF file (version 3) with general.architecture and the keys "tokenizer.*" of `file`, byte for byte
// as they are there; other tools that read vocabularies read it. Empty: the file has none.
std::string GgufTokenizerFile(const GgufFile& file);
// Whether it has that and nothing else.
bool IsGgufTokenizerFile(const GgufFile& file);

}  // namespace mlc
