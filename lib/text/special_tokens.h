// lib/text/special_tokens.h - tokens that files do not mark as what they are, known by their texts.
#pragma once

#include "lib/text/tokenizer.h"

namespace mlc {

// Adds to `spec` what is known of tokens by their texts: which end an answer (eot, ends), and that
// these are control tokens. The texts are those of llama.cpp's src/llama-vocab.cpp.
void MarkSpecialTokens(TokenizerSpec& spec);

}  // namespace mlc
