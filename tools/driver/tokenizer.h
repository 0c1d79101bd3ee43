// tools/driver/tokenizer.h - loads the tokenizer of a model of any format.
#pragma once

#include <filesystem>

#include "lib/text/tokenizer.h"

namespace mlc::driver {

// Loads the tokenizer of a GGUF file, a Hugging Face folder or a tokenizer.json, or the file beside
// a package or bundle (X.tokenizer.gguf or X.tokenizer.json beside X.mlpackage). The format is
// detected by content. Throws located errors of the readers and of Tokenizer;
// "unsupported-tokenizer" if there is none; "unknown-format".
text::Tokenizer LoadTokenizer(const std::filesystem::path& path);

// Returns the tokenizer file beside a package or bundle, empty if there is none.
std::filesystem::path TokenizerBeside(const std::filesystem::path& package);

}  // namespace mlc::driver
