// frontends/safetensors/tokenizer_writer.h - writes a tokenizer of another format as the files that
// Hugging Face's libraries and swift-transformers read.
#pragma once

#include "frontends/safetensors/tokenizer.h"
#include "lib/text/tokenizer.h"

namespace mlc::safetensors {

// Writes (without config.json) the specification of a tokenizer that follows llama.cpp (`hugging_face` is not set), as
// Tokenizer::spec() returns it. Its ids are those of llama.cpp, except for
//   - BERT: text is normalized as in Hugging Face's BertNormalizer, which the models were trained
//     with, and words of more than 100 characters are unknown;
//   - special tokens that overlap: the leftmost one is recognised, instead of the longest;
//   - characters without a token in a SentencePiece vocabulary without bytes: one unknown token stands
//     for all that are adjacent, instead of one for each byte;
//   - ties between equal scores, and merges that lead to no token;
//   - tokens with the text of a later token, or that are not UTF-8: no text is encoded as them.
// Error "unsupported-tokenizer" for a step that tokenizer.json cannot express.
HuggingFaceTexts WriteHuggingFaceTokenizer(const text::TokenizerSpec& spec);

}  // namespace mlc::safetensors
