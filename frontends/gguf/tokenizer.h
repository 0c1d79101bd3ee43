// frontends/gguf/tokenizer.h - reads the tokenizer that a GGUF file describes, and what a config.json
// says beside it.
#pragma once

#include <string>

#include "frontends/gguf/file.h"
#include "lib/text/tokenizer.h"

namespace mlc::gguf {

// Reads the keys "tokenizer.*" (ggml's docs/gguf.md) as llama.cpp does; the file may lack tensors.
// Errors: "unsupported-tokenizer" with the name of a model or pre-tokenizer that lib/text does not
// support, "bad-file" if a key is missing or has another type.
text::TokenizerSpec ReadGgufTokenizer(const GgufFile& file);

// Returns whether the file has a text tokenizer: other models have none, or one that is called "none" or
// "no_vocab".
bool HasTokenizer(const GgufFile& file);

// Returns a config.json with what libraries for Hugging Face tokenizers read of it: model_type, the
// number and the special ids of tokens, and the sizes that the file states.
std::string HuggingFaceConfig(const GgufFile& file);

}  // namespace mlc::gguf
