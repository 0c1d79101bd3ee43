// frontends/gguf/tokenizer.h - reads the tokenizer that a GGUF file describes, and writes it to a
// separate file: a GGUF file without tensors.
#pragma once

#include <string>

#include "frontends/gguf/file.h"
#include "lib/text/tokenizer.h"

namespace mlc::gguf {

// Reads the keys "tokenizer.*" (ggml's docs/gguf.md) as llama.cpp does; the file may lack tensors.
// Errors: "unsupported-tokenizer" with the name of a model or pre-tokenizer that lib/text does not
// support, "bad-file" if a key is missing or has another type.
text::TokenizerSpec ReadGgufTokenizer(const GgufFile& file);

// Returns a GGUF file (version 3) with general.architecture and the keys "tokenizer.*" of `file`,
// copied byte for byte; tools that read GGUF vocabularies can read it. Returns an empty string if
// the file has no tokenizer.
std::string GgufTokenizerFile(const GgufFile& file);
// Returns whether a file has only these keys and no tensors.
bool IsGgufTokenizerFile(const GgufFile& file);

}  // namespace mlc::gguf
