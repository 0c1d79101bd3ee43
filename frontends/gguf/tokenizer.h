// frontends/gguf/tokenizer.h - the tokenizer that a GGUF file describes.
#pragma once

#include "frontends/gguf/file.h"
#include "lib/text/tokenizer.h"

namespace mlc {

// From the keys "tokenizer.*" (ggml's docs/gguf.md), read as llama.cpp reads them; the file needs no
// tensors. Error "unsupported-tokenizer", which names the model or pre-tokenizer, where lib/text has
// no such thing; "bad-file" where a key is missing or of another type.
TokenizerSpec ReadGgufTokenizer(const GgufFile& file);

}  // namespace mlc
