// lib/text/pre_tokenizers.h - how text is cut into words before byte-level BPE, by the name that a
// file has for it.
//
// The names are those of GGUF's tokenizer.ggml.pre, and what they stand for is what llama.cpp makes of
// them (src/llama-vocab.cpp), where that is not what the model was trained with, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"

namespace mlc {

struct PreTokenizer {
  std::vector<std::string_view> names;
  // Each cuts what those before it left: matches, and what is between them, are pieces.
  std::vector<std::string> patterns;
  bool ignore_merges = false;   // a piece that is a token is not merged
  bool add_bos = false;         // where the file does not say
  bool spaces_escaped = false;  // tokens are characters, with U+2581 for spaces, not bytes
  bool has_bos = true;          // the kind's default holds where the file names none
};

// Error "unsupported-tokenizer", with the names that are known, where there is no such row.
const PreTokenizer& FindPreTokenizer(std::string_view name);
// The steps that a row stands for.
std::vector<TextStep> Steps(const PreTokenizer& row);
// All rows, for tests.
const std::vector<PreTokenizer>& PreTokenizers();

}  // namespace mlc
