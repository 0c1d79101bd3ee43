// lib/text/end_of_generation_tokens.h - recognizes special tokens that files do not mark as such,
// by their texts.
#pragma once

#include "lib/text/tokenizer.h"

namespace mlc::text {

// Adds to `spec` what the texts of tokens imply: the tokens that end an answer (eot, ends), as
// control tokens. The texts are those of src/llama-vocab.cpp in llama.cpp.
void MarkSpecialTokens(TokenizerSpec& spec);

}  // namespace mlc::text
