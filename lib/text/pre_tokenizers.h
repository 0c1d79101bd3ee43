// lib/text/pre_tokenizers.h - the pre-tokenizers of byte-level BPE, by the names that files use.
//
// The names are the values of tokenizer.ggml.pre in GGUF. Each splits like llama.cpp
// (src/llama-vocab.cpp), even where that differs from the tokenizer used in training.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"

namespace mlc::text {

struct PreTokenizer {
  std::vector<std::string_view> names;
  // Each pattern splits the pieces left by the previous one: both matches and the text between them
  // become pieces.
  std::vector<std::string> patterns;
  bool ignore_merges = false;  // pieces in the vocabulary are not merged
  bool add_bos = false;        // default if the file does not specify it
  bool spaces_escaped =
      false;            // tokens are characters rather than bytes, and U+2581 stands for a space
  bool has_bos = true;  // use the default token of the kind if the file names none
};

// Error "unsupported-tokenizer", with the known names, if there is no such row.
const PreTokenizer& FindPreTokenizer(std::string_view name);
// The steps of a row.
std::vector<TextStep> Steps(const PreTokenizer& row);
// All rows, for tests.
const std::vector<PreTokenizer>& PreTokenizers();

}  // namespace mlc::text
