// frontends/gguf/tokenizer.h - the tokenizer that a GGUF file describes.
#pragma once

#include "frontends/gguf/file.h"
#include "lib/text/tokenizer.h"

namespace mlc::gguf {

// Reads the keys "tokenizer.*" (ggml's docs/gguf.md) as llama.cpp does; the file may lack tensors.
// Errors: "unsupported-tokenizer" with the name of a model or pre-tokenizer that lib/text does not
// support, "bad-file" if a key is missing or has another type.
text::TokenizerSpec ReadGgufTokenizer(const GgufFile& file);

}  // namespace mlc::gguf
